//go:build !linux

package main

// forget leaves the file where it is: what is measured then is memory.
func forget(string) error { return nil }
