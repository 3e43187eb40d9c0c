package scan_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/scan"
)

// Documents may end with the error of a context of their own. The scan must report it.
func TestCanceledDocuments(t *testing.T) {
	docs := func(yield func(scan.Document, error) bool) {
		for doc := range numbered(5) {
			if !yield(doc, nil) {
				return
			}
		}
		yield(scan.Document{}, context.Canceled)
	}
	_, err := collect(t, scan.Run(t.Context(), docs, scan.Func(double), scan.Options{}))
	require.ErrorIs(t, err, context.Canceled)
}

// A function that ends its goroutine counts as dead, like one that panics.
func TestAFunctionThatEndsItsGoroutine(t *testing.T) {
	work := func(doc *scan.Document) ([]byte, error) {
		if doc.Value == 3 {
			runtime.Goexit()
		}
		return double(doc)
	}
	o := scan.Options{Workers: 2}
	got, err := collect(t, scan.Run(t.Context(), numbered(10), scan.Func(work), o))
	require.NoError(t, err)
	requireDoubled(t, got, 10, 3)
	require.ErrorIs(t, got[3].Err, scan.ErrSkipped)
}

// A panic or the end of the caller's goroutine ends the scan like a break.
func TestTheCallersCodePanics(t *testing.T) {
	for _, fail := range []func(){func() { panic("broken") }, runtime.Goexit} {
		for _, inLoop := range []bool{true, false} {
			open := false
			docs := func(yield func(scan.Document, error) bool) {
				open = true
				defer func() { open = false }()
				numbered(1e9)(yield)
			}
			o := scan.Options{Progress: func(scan.Stats) {
				if !inLoop {
					fail()
				}
			}}
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				for range scan.Run(t.Context(), docs, scan.Func(double), o) {
					if inLoop {
						fail()
					}
				}
			}()
			<-done
			require.False(t, open, "the scan still reads documents")
		}
	}
}

// A process started by a worker may outlive it and keep its output open. The scan does not wait.
func TestHangingGrandchild(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil || testing.Short() {
		t.Skip("no sh")
	}
	held, release, err := os.Pipe()
	require.NoError(t, err)
	defer held.Close()
	defer release.Close() // ends the remaining processes
	start := scan.Process(func() *exec.Cmd {
		cmd := exec.Command("sh", "-c", "cat <&3; true")
		cmd.ExtraFiles = []*os.File{held}
		return cmd
	})
	got, err := collect(t, scan.Run(t.Context(), numbered(1), start,
		scan.Options{Workers: 1, Timeout: 50 * time.Millisecond}))
	require.NoError(t, err)
	require.ErrorIs(t, got[0].Err, scan.ErrSkipped)
}
