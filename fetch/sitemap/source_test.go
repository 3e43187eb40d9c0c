package sitemap_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/sitemap"
)

// forgetful returns its error once, and io.EOF from then on, as the body of a request that was cut does.
type forgetful struct {
	r   io.Reader
	err error
}

func (f *forgetful) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err == io.EOF {
		err, f.err = f.err, io.EOF
	}
	return n, err
}

func TestAnErrorAtTheBeginningIsKept(t *testing.T) {
	cut := errors.New("cut")
	for _, start := range []string{"", `<?xml version="1.0" encoding="iso-8859-1"?>`} {
		for _, text := range []string{start + "<urlset>", zipped(t, start+"<urlset>")[:30]} {
			var last error
			for _, err := range sitemap.Entries(&forgetful{strings.NewReader(text), cut}, "http://a.test/") {
				last = err
			}
			require.ErrorIs(t, last, cut, text)
		}
	}
}
