package botauth_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/fetch/botauth"
	"github.com/stretchr/testify/require"
)

func read(t testing.TB, client *http.Client, url string) (*http.Response, string) {
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

// The body and the digest of the directory equal those of the test vector in
// draft-ietf-webbotauth-httpsig-protocol.
func TestDirectoryOfTheDraft(t *testing.T) {
	client := host(botauth.Bot{Signer: newSigner(t, crawler)}.Handler())
	resp, body := read(t, client, "https://crawler.test"+botauth.DirectoryPath)
	require.Equal(t, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"`+testKeyID+
		`","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","use":"sig"}]}`, body)
	require.Equal(t, "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:", resp.Header.Get("Content-Digest"))
	require.Equal(t, "max-age=3600", resp.Header.Get("Cache-Control"))
}

// The directory is not signed for a foreign host: the signature would assert that the keys belong
// to that host.
func TestDirectoryIsSignedForItsHostOnly(t *testing.T) {
	signer := newSigner(t, botauth.Options{Agent: "https://Crawler.test:443/"})
	client := host(signer)
	for url, signed := range map[string]bool{
		"https://crawler.test": true, "https://CRAWLER.test:443": true,
		"https://evil.test": false, "https://crawler.test:8443": false, "https://crawler.test.evil.test": false,
	} {
		resp, _ := read(t, client, url+botauth.DirectoryPath)
		require.Equal(t, signed, resp.Header.Get("Signature") != "", url)
		_, err := directoryOf(client, url+botauth.DirectoryPath, time.Now())
		require.Equal(t, url == "https://crawler.test", err == nil, "%s: %v", url, err)
	}
}

func TestBot(t *testing.T) {
	bot := botauth.Bot{
		Name: "examplebot", UserAgent: "examplebot/1.0 (+https://crawler.test/)",
		Purpose: "It builds an index of <b>bold</b> pages.", Contact: "bot@crawler.test",
		Ranges: []netip.Prefix{netip.MustParsePrefix("192.0.2.9/24"), {}, netip.MustParsePrefix("2001:db8::/48")},
		Signer: newSigner(t, crawler),
	}
	client := host(bot.Handler())
	resp, page := read(t, client, "https://crawler.test/")
	require.Equal(t, "text/html; charset=utf-8", resp.Header.Get("Content-Type"))
	for _, part := range []string{
		"<title>examplebot</title>", `<link rel=help href="/ip-ranges.json">`, "User-agent: examplebot\nDisallow: /",
		"of &lt;b&gt;bold&lt;/b&gt; pages", `<a href="mailto:bot@crawler.test">`, "User-Agent: examplebot/1.0 (+https://crawler.test/)",
		`<a href="` + botauth.DirectoryPath + `">`,
	} {
		require.Contains(t, page, part)
	}

	resp, text := read(t, client, "https://crawler.test"+botauth.RangesPath)
	require.Equal(t, "application/jafar+json", resp.Header.Get("Content-Type"))
	var doc struct {
		CreationTime time.Time
		Prefixes     []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	require.Equal(t, []map[string]any{
		{"ipv4Prefix": "192.0.2.0/24", "services": []any{"examplebot"}},
		{"ipv6Prefix": "2001:db8::/48", "services": []any{"examplebot"}},
	}, doc.Prefixes)
	require.WithinRange(t, doc.CreationTime, time.Now().Add(-2*time.Hour), time.Now())
	require.Contains(t, text, `Z"`, "times are in UTC")
	req, err := http.NewRequest(http.MethodGet, "https://crawler.test"+botauth.RangesPath, nil)
	require.NoError(t, err)
	req.Header.Set("If-None-Match", resp.Header.Get("Etag"))
	again, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, again.Body.Close())
	require.Equal(t, http.StatusNotModified, again.StatusCode)

	// Empty fields are omitted from the page, and no other path is served.
	client = host(botauth.Bot{Contact: "https://example.org/?a&b"}.Handler())
	_, page = read(t, client, "https://crawler.test/")
	require.Contains(t, page, `<a href="https://example.org/?a&amp;b" rel=nofollow>`)
	for _, part := range []string{"robots.txt", "User-Agent", "addresses", "keys", "rel=help"} {
		require.NotContains(t, page, part)
	}
	for _, path := range []string{botauth.RangesPath, botauth.DirectoryPath, "/other"} {
		resp, _ := read(t, client, "https://crawler.test"+path)
		require.Equal(t, http.StatusNotFound, resp.StatusCode, path)
	}
}
