//go:build !windows

package neterr

import "syscall"

var (
	exhausted   = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}
	unconnected = []error{syscall.EADDRNOTAVAIL, syscall.ENETDOWN, syscall.ENETUNREACH}
	refused     = []error{syscall.ECONNREFUSED}
	reset       = []error{syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE}
)
