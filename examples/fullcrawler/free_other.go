//go:build !linux && !darwin

package main

// freeSpace cannot tell.
func freeSpace(string) (bytes int64, known bool) { return 0, false }
