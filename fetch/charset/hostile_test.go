package charset_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/charset"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/stretchr/testify/require"
)

// The virtual web has pages that say one thing of their encoding and are another. Their text is
// there wherever a browser would show it, and whatever comes out is UTF-8.
func TestPagesThatLie(t *testing.T) {
	lost := map[int]string{
		10: "declared to be UTF-8 and is not", 11: "declared to be Latin-1 and is UTF-8",
		17: "UTF-7, which no browser reads", 20: "an image",
	}
	web, err := webtest.Start(webtest.Options{Hosts: 1, Network: memnet.New(), Traits: func(int) webtest.Traits {
		return webtest.Traits{Traps: webtest.TrapCharset}
	}})
	require.NoError(t, err)
	defer web.Close()
	client, err := fetch.New(fetch.Options{
		Reach: fetch.Loopback, Dial: web.Dial, Resolve: web.Resolve,
	})
	require.NoError(t, err)
	defer client.CloseIdle()
	for n := 0; ; n++ {
		url := fmt.Sprintf("http://h00000.vweb.test/trap/charset/%d", n)
		r, err := client.Get(t.Context(), url, fetch.Validators{})
		require.NoError(t, err)
		if r.Status == 404 {
			require.Greater(t, n, 20)
			break
		}
		page, name, err := charset.ToUTF8(r.Body, r.Header.Get("Content-Type"))
		require.NoError(t, err, url)
		require.True(t, utf8.Valid(page), "%s: %q", url, page)
		shown := strings.Contains(string(page), "caf\u00e9") || strings.Contains(string(page), "\u6771\u4eac")
		require.Equal(t, lost[n] == "", shown, "%s as %s: %q", url, name, page)
	}
}
