//go:build !windows && (!unix || solaris || aix || illumos)

package vfs

import "errors"

// Map says that there is no such thing here, or that package syscall does not know it.
func (d OS) Map(string, int) (*Map, error) { return nil, errors.ErrUnsupported }
