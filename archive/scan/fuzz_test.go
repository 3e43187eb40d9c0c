package scan

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzReadReply asserts that an accepted reply has the exact form, and that nothing after it is
// read.
func FuzzReadReply(f *testing.F) {
	f.Add([]byte("OK 1 2\nxyrest"))
	f.Add([]byte("FAIL 1 3\nabc"))
	f.Add([]byte("OK 1 +2\nxy"))
	f.Add([]byte("OK 2 0\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		reply, err := readReply(r, 1, 1000)
		word, text := "OK", string(reply)
		if errors.Is(err, ErrFailed) {
			word, text = "FAIL", strings.TrimPrefix(err.Error(), ErrFailed.Error()+": ")
		} else if err != nil {
			return
		}
		want := fmt.Sprintf("%s 1 %d\n%s", word, len(text), text)
		require.Equal(t, want, string(data[:len(want)]))
		require.Equal(t, len(data)-len(want), r.Buffered())
	})
}

// FuzzDocument asserts that both sides of the protocol agree on any document and reply.
func FuzzDocument(f *testing.F) {
	f.Add([]byte("meta"), []byte("DOC 1 2 3\n"))
	f.Fuzz(func(t *testing.T, meta, data []byte) {
		var pipe, replies bytes.Buffer
		w := bufio.NewWriter(&pipe)
		for number := range int64(2) {
			require.NoError(t, writeDocument(w, number, meta, data))
		}
		require.NoError(t, Serve(&pipe, &replies, func(m, d []byte) ([]byte, error) {
			require.True(t, bytes.Equal(meta, m) && bytes.Equal(data, d))
			return d, nil
		}))
		r := bufio.NewReader(&replies)
		for number := range int64(2) {
			reply, err := readReply(r, number, len(data))
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, reply))
		}
	})
}
