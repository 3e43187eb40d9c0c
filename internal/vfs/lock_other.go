//go:build !windows && (!unix || solaris || aix || illumos)

package vfs

import (
	"io"
	"os"
)

// Lock creates the file if it does not exist. These systems have no lock that ends with the
// process, so two processes do not exclude each other.
func (d OS) Lock(name string) (io.Closer, error) {
	return os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE, 0o600)
}
