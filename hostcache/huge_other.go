//go:build !linux

package hostcache

// adviseHuge is for Linux.
func adviseHuge(chunk []byte, end uintptr) uintptr { return 0 }
