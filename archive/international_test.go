package archive

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// net/http asks for an international name in Punycode, though net/url writes it with escapes. A host is found, and
// erased, in either form, also as other programs have written it.
func TestInternationalNames(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	for _, url := range []string{"http://Bücher.test:8080/ü", "http://xn--bcher-kva.test/", "http://www.bücher.test./"} {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		require.NoError(t, err)
		var c Capture
		c.FromResponse(&http.Response{Request: req, StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1}, []byte("text"))
		require.Contains(t, c.URL, "xn--bcher-kva.test")
		require.Contains(t, string(c.Request), "xn--bcher-kva.test")
		_, err = a.Append(c)
		require.NoError(t, err)
	}
	_, err := a.Append(visit{"http://bücher.test/raw", someTime, 200, "text"}.capture())
	require.NoError(t, err)
	_, err = a.At("http://xn--bcher-kva.test:8080/%C3%BC", time.Time{})
	require.NoError(t, err)
	for _, host := range []string{"bücher.test", "BÜCHER.test", "xn--bcher-kva.test"} {
		found := 0
		for v, err := range a.List(Query{Site: host}) {
			require.NoError(t, err)
			require.NotContains(t, v.URL, "b%")
			found++
		}
		require.Equal(t, map[bool]int{true: 3, false: 4}[host == "xn--bcher-kva.test"], found, host)
	}
	report, err := a.Erase(t.Context(), Selection{Host: "bücher.test"}, "asked for")
	require.NoError(t, err)
	require.Equal(t, 3, report.Erased)
	require.NoError(t, a.Close())
}

// What is no host would be found nowhere, and an erasure would erase nothing.
func TestWhatIsNoHostIsRefused(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	for _, host := range []string{"me@a.test", " a.test", "a.test?", "a.test#top"} {
		_, err := a.Erase(t.Context(), Selection{Host: host}, "asked for")
		require.ErrorIs(t, err, ErrInvalid, host)
	}
	require.NoError(t, a.Close())
}
