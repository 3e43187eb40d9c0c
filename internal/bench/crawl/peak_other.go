//go:build !linux

package main

// watchMemory is not supported here.
func watchMemory(int) (peak func() int64) { return func() int64 { return 0 } }
