//go:build !unix

package main

import "testing"

// limitFileSize makes writes beyond a file size fail.
func limitFileSize(t *testing.T, _ uint64) { t.Skip("no limit on file sizes on this system") }
