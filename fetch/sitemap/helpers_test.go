package sitemap_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/spinneret-go/spinneret/internal/weburl"
	"github.com/stretchr/testify/require"
)

func zipped(t testing.TB, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// utf16 returns text in UTF-16, little-endian.
func utf16(text string) string {
	var b []byte
	for _, c := range text {
		b = append(b, byte(c), byte(c>>8))
	}
	return string(b)
}

// noise returns n bytes that do not compress.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

// lawful returns an error if Entries must not yield the URL.
func lawful(url string) error {
	u, err := weburl.Parse(url, nil)
	switch {
	case err != nil:
		return err
	case u.String() != url || !weburl.IsWeb(&u):
		return fmt.Errorf("parses to %q", u.String())
	case u.HasFragment || u.Username != "" || u.Password != "":
		return fmt.Errorf("fragment or credentials")
	case len(url) > 8<<10:
		return fmt.Errorf("%d bytes", len(url))
	}
	return nil
}
