//go:build !linux

package main

import "testing"

// mountDisk is implemented on Linux only.
func mountDisk(*testing.T) (disk, bool) { return nil, false }
