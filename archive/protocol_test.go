package archive

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// Captures of all protocols are stored as HTTP/1.1 messages. The records have the original
// protocol, and the reader returns it.
func TestProtocols(t *testing.T) {
	const tls13 = tls.VersionTLS13
	for _, tt := range []struct {
		name, head, request, protocol string
		tls                           uint16
		wantHead, wantRequest         string
		values                        []string
		want                          string
	}{
		{"HTTP/1.1", "HTTP/1.1 200 OK", "GET /a HTTP/1.1", "", 0,
			"HTTP/1.1 200 OK", "GET /a HTTP/1.1", nil, ""},
		{"HTTP/1.1 over TLS", "HTTP/1.1 200 OK", "GET /a HTTP/1.1", "HTTP/1.1", tls13,
			"HTTP/1.1 200 OK", "GET /a HTTP/1.1", []string{"http/1.1", "tls/1.3"}, "HTTP/1.1"},
		{"HTTP/1.0", "HTTP/1.0 200 OK", "GET /a HTTP/1.0", "HTTP/1.0", 0,
			"HTTP/1.0 200 OK", "GET /a HTTP/1.0", []string{"http/1.0"}, "HTTP/1.0"},
		{"HTTP/2", "HTTP/2.0 200 OK", "GET /a HTTP/2.0", "HTTP/2.0", tls13,
			"HTTP/1.1 200 OK", "GET /a HTTP/1.1", []string{"h2", "tls/1.3"}, "HTTP/2.0"},
		{"HTTP/2 in the head alone", "HTTP/2 200", "GET /a?b=HTTP/2 HTTP/2", "", tls13,
			"HTTP/1.1 200 ", "GET /a?b=HTTP/2 HTTP/1.1", []string{"h2", "tls/1.3"}, "HTTP/2.0"},
		{"HTTP/2 without TLS", "HTTP/2.0 404 Not Found", "GET /a HTTP/2.0", "", 0,
			"HTTP/1.1 404 Not Found", "GET /a HTTP/1.1", []string{"h2c"}, "HTTP/2.0"},
		{"HTTP/3", "HTTP/3.0 200 OK", "GET /a HTTP/3.0", "", tls13,
			"HTTP/1.1 200 OK", "GET /a HTTP/1.1", []string{"h3", "tls/1.3"}, "HTTP/3.0"},
		{"HTTP/2 with a head of HTTP/1.1", "HTTP/1.1 200 OK", "", "HTTP/2.0", tls13,
			"HTTP/1.1 200 OK", "", []string{"h2", "tls/1.3"}, "HTTP/2.0"},
		{"an unknown version of TLS", "HTTP/1.1 200 OK", "", "HTTP/1.1",
			1, "HTTP/1.1 200 OK", "", []string{"http/1.1"}, "HTTP/1.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := openDir(t, t.TempDir(), Options{})
			c := page("https://a.test/a", "body")
			c.Head = []byte(tt.head + "\r\nTransfer-Encoding: chunked\r\n\r\n")
			c.Protocol, c.TLS, c.Request = tt.protocol, tt.tls, nil
			if tt.tls == tls13 {
				c.CipherSuite = tls.TLS_AES_128_GCM_SHA256
			}
			if tt.request != "" {
				c.Request = []byte(tt.request + "\r\nHost: a.test\r\n\r\n")
			}
			before := string(c.Head) + string(c.Request)
			loc, err := a.Append(c)
			require.NoError(t, err)
			require.Equal(t, before, string(c.Head)+string(c.Request), "Append modified its input")
			v, err := a.At(c.URL, time.Time{})
			require.NoError(t, err)
			require.Contains(t, tt.head, strings.Fields(tt.wantHead)[1])
			require.NotZero(t, v.Status)
			require.Equal(t, "body", body(t, a, v))
			for _, rec := range records(t, a, loc.File) {
				line, _, _ := strings.Cut(rec.head, "\r\n")
				want := tt.wantHead
				if rec.kind == "request" {
					want = tt.wantRequest
				}
				require.Equal(t, want, line)
				require.Equal(t, tt.values, rec.protocols)
			}
			rec, err := a.Read(loc)
			require.NoError(t, err)
			require.Equal(t, tt.want, rec.Protocol())
			if tt.tls == tls13 {
				require.Equal(t, "TLS_AES_128_GCM_SHA256", rec.Get("WARC-Cipher-Suite"))
			} else {
				require.Empty(t, rec.Get("WARC-Cipher-Suite"))
			}
			require.NoError(t, rec.Close())
			require.NoError(t, a.Close())
		})
	}
}

// Names of cipher suites are those of package crypto/tls, even of unknown suites.
func TestCipherSuites(t *testing.T) {
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		var h warc.Head
		h.SetConnection("", 0, suite.ID)
		require.Equal(t, suite.Name, h.CipherSuite)
	}
	a := openDir(t, t.TempDir(), Options{})
	c := page("https://a.test/", "x")
	c.CipherSuite = 0x9abc
	loc, err := a.Append(c)
	require.NoError(t, err)
	rec, err := a.Read(loc)
	require.NoError(t, err)
	require.Equal(t, "0x9ABC", rec.Get("WARC-Cipher-Suite"))
	require.NoError(t, rec.Close())
	require.NoError(t, a.Close())
}

// messageRecord is a request or a response in a file.
type messageRecord struct {
	kind, head string
	protocols  []string
}

// records returns the messages in a file.
func records(t *testing.T, a *Archive, name string) (all []messageRecord) {
	f, err := a.openFile(name)
	require.NoError(t, err)
	defer f.Close()
	r := a.readerWith(nil)
	defer r.close()
	r.readAt(f, name, 0, f.size)
	for rec, err := range r.warc.Records() {
		require.NoError(t, err)
		if rec.Type() == "warcinfo" {
			continue
		}
		message, err := rec.HTTP()
		require.NoError(t, err)
		all = append(all, messageRecord{rec.Type(), string(message.Head),
			rec.Fields().Values("WARC-Protocol")})
	}
	require.NotEmpty(t, all)
	return all
}

// A revisit record for an identical payload is marked as truncated (WARC 1.1, section 6.7.2), but
// its version is not.
func TestRevisitIsMarkedAsTruncated(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	for i, status := range []int{200, 200, 304} {
		v := visit{"http://a.test/", someTime.Add(time.Duration(i) * time.Hour), status, "one"}
		if status == 304 {
			v.body = ""
		}
		loc, err := a.Append(v.capture())
		require.NoError(t, err)
		rec, err := a.Read(loc)
		require.NoError(t, err)
		require.Equal(t, []string{"", "length", ""}[i], rec.Get("WARC-Truncated"))
		require.NoError(t, rec.Close())
	}
	for range 2 {
		versions, err := a.Versions("http://a.test/")
		require.NoError(t, err)
		for _, v := range versions {
			require.False(t, v.Truncated)
			require.Equal(t, "one", body(t, a, v))
		}
		require.NoError(t, a.Close())
		_, err = Repair(dir, Options{})
		require.NoError(t, err)
		a = openDir(t, dir, Options{})
	}
	require.NoError(t, a.Close())
}
