package neterr_test

import (
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/neterr"
)

// TestNumbersOfWindows covers errors that a test cannot provoke.
func TestNumbersOfWindows(t *testing.T) {
	for errno, want := range map[syscall.Errno]func(error) bool{
		10024: neterr.Exhausted, 10055: neterr.Exhausted, 8: neterr.Exhausted,
		10049: neterr.Local, 10050: neterr.Local, 10051: neterr.Local, 10061: neterr.Refused,
		10053: neterr.Reset, 10054: neterr.Reset, 64: neterr.Reset,
	} {
		err := &net.OpError{Op: "dial", Err: os.NewSyscallError("connectex", errno)}
		require.True(t, want(err), "%d", errno)
	}
}
