//go:build !windows && (!unix || solaris || aix || illumos)

package vfs

import "errors"

// Map is not supported by the system or by package syscall.
func (d OS) Map(string, int) (*Map, error) { return nil, errors.ErrUnsupported }
