//go:build !linux

package pagerank

import "unsafe"

// adviseHuge is for Linux.
func adviseHuge(unsafe.Pointer, uintptr) {}
