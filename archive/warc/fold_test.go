package warc

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A name does not reach into the next line.
func TestNamesEndWithTheirLine(t *testing.T) {
	h := &HTTP{Head: []byte("HTTP/1.1 200 OK\r\nFoo\r\n Bar: baz\r\nA: b\r\n\r\n")}
	require.Equal(t, http.Header{"A": {"b"}}, h.Header())
}
