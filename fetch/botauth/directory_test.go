package botauth_test

import (
	"io"
	"net/http"
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
	client := host(newSigner(t, crawler))
	resp, body := read(t, client, "https://crawler.test"+botauth.DirectoryPath)
	require.Equal(t, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"`+testKeyID+
		`","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","use":"sig"}]}`, body)
	require.Equal(t, "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:", resp.Header.Get("Content-Digest"))
	require.Equal(t, "max-age=3600", resp.Header.Get("Cache-Control"))
	req, err := http.NewRequest(http.MethodGet, directoryURL, nil)
	require.NoError(t, err)
	req.Header.Set("If-None-Match", resp.Header.Get("Etag"))
	again, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, again.Body.Close())
	require.Equal(t, http.StatusNotModified, again.StatusCode)
}

// The signatures are about the digest of the whole directory, so nobody gets a part of it.
func TestDirectoryIsWhole(t *testing.T) {
	client := host(newSigner(t, crawler))
	_, want := read(t, client, "https://crawler.test"+botauth.DirectoryPath)
	for _, part := range []string{"bytes=0-9", "bytes=5-6,8-9", "bytes=10000-"} {
		req, err := http.NewRequest(http.MethodGet, directoryURL, nil)
		require.NoError(t, err)
		req.Header.Set("Range", part)
		resp, err := client.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, want, string(body))
		require.Equal(t, part, req.Header.Get("Range"))
	}
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
