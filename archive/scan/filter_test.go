package scan_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/scan"
)

// texts yields documents of texts.
func texts(list ...string) iter.Seq2[scan.Document, error] {
	return func(yield func(scan.Document, error) bool) {
		for i, text := range list {
			doc := scan.Document{Data: []byte(text), Meta: fmt.Appendf(nil, `{"n":%d}`, i)}
			if !yield(doc, nil) {
				return
			}
		}
	}
}

// filtered returns the results of a program, in order.
func filtered(t *testing.T, o scan.Options, docs iter.Seq2[scan.Document, error],
	program ...string) (results []scan.Result) {
	o.Ordered = true
	filter := scan.Filter(program[0], program[1:]...)
	for result, err := range scan.Run(t.Context(), docs, filter, o) {
		require.NoError(t, err)
		results = append(results, result)
	}
	return results
}

func TestFilter(t *testing.T) {
	for _, workers := range []int{1, 3} {
		docs := texts("", "a", "bc\n", strings.Repeat("x", 300_000))
		got := filtered(t, scan.Options{Workers: workers}, docs, "wc", "-c")
		require.Len(t, got, 4)
		for i, want := range []string{"0", "1", "3", "300000"} {
			require.NoError(t, got[i].Err)
			require.Equal(t, want, strings.TrimSpace(string(got[i].Out)))
		}
	}
	got := filtered(t, scan.Options{}, texts("x", "y"), "sh", "-c", `echo "$SCAN_META"`)
	require.Equal(t, "{\"n\":1}\n", string(got[1].Out))

	// A program need not read its input.
	got = filtered(t, scan.Options{}, texts(strings.Repeat("x", 1<<20)), "true")
	require.NoError(t, got[0].Err)
}

// A program may fail for one document; the error has its message.
func TestFilterFails(t *testing.T) {
	got := filtered(t, scan.Options{Workers: 1}, texts("good", "bad", "good"), "sh", "-c",
		`read line; echo "$line"; case $line in bad) echo no use >&2; exit 3;; esac`)
	require.Len(t, got, 3)
	require.NoError(t, got[0].Err)
	require.ErrorIs(t, got[1].Err, scan.ErrFailed)
	require.ErrorContains(t, got[1].Err, "exit status 3: no use")
	require.NoError(t, got[2].Err)

	got = filtered(t, scan.Options{MaxReply: 1000}, texts("x"), "sh", "-c", "yes")
	require.ErrorIs(t, got[0].Err, scan.ErrFailed)
	require.ErrorContains(t, got[0].Err, "more than 1000 bytes")

	got = filtered(t, scan.Options{Timeout: 50 * time.Millisecond}, texts("x"), "sleep", "1000")
	require.ErrorIs(t, got[0].Err, scan.ErrSkipped)

	for _, err := range scan.Run(t.Context(), texts("x"), scan.Filter("there is no such program"),
		scan.Options{}) {
		require.ErrorContains(t, err, "executable file not found")
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	var last error // the result of the document in flight may come first
	for _, err := range scan.Run(ctx, texts("x"), scan.Filter("sleep", "1000"), scan.Options{}) {
		last = err
	}
	require.ErrorIs(t, last, context.Canceled)
}

// A filter reads the result of Decode.
func TestFilterDecodes(t *testing.T) {
	broken := errors.New("broken")
	docs := func(yield func(scan.Document, error) bool) {
		for _, text := range []string{"abc", "BROKEN"} {
			doc := scan.Document{Data: []byte(text), Decode: func(data []byte) ([]byte, error) {
				if string(data) == "BROKEN" {
					return nil, broken
				}
				return bytes.ToUpper(data), nil
			}}
			if !yield(doc, nil) {
				return
			}
		}
	}
	got := filtered(t, scan.Options{}, docs, "cat")
	require.Equal(t, "ABC", string(got[0].Out))
	require.ErrorIs(t, got[1].Err, broken)
	require.ErrorIs(t, got[1].Err, scan.ErrFailed)
}

func ExampleFilter() {
	documents := func(yield func(scan.Document, error) bool) {
		_ = yield(scan.Document{Data: []byte("one two three\n")}, nil)
	}
	for result, err := range scan.Run(context.Background(), documents, scan.Filter("wc", "-w"),
		scan.Options{}) {
		fmt.Println(strings.TrimSpace(string(result.Out)), result.Err, err)
	}
	// Output: 3 <nil> <nil>
}
