//go:build !linux

package main

import "testing"

// mountDisk cannot be had on these systems.
func mountDisk(*testing.T) (disk, bool) { return nil, false }
