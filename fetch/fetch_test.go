package fetch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

func TestNew(t *testing.T) {
	tests := []struct {
		name string
		opts fetch.Options
		want error // nil: fine
	}{
		{"no user agent", fetch.Options{}, fetch.NoAgent},
		{"white space as the user agent", fetch.Options{UserAgent: "  "}, fetch.NoAgent},
		{"a name without a contact", fetch.Options{UserAgent: "mybot/1.0"}, fetch.NoContact},
		{"Anywhere requires a contact", fetch.Options{UserAgent: "mybot", Reach: fetch.Anywhere},
			fetch.NoContact},
		{"half a URL", fetch.Options{UserAgent: "mybot (+http://)"}, fetch.NoContact},
		{"half an address", fetch.Options{UserAgent: "mybot (me@)"}, fetch.NoContact},
		{"a URL", fetch.Options{UserAgent: "mybot/1.0 (+https://a.test/bot)"}, nil},
		{"an address", fetch.Options{UserAgent: "mybot/1.0 (me@a.test)"}, nil},
		{"Loopback requires none", fetch.Options{Reach: fetch.Loopback}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := fetch.New(tt.opts)
			require.ErrorIs(t, err, tt.want, "New(%+v)", tt.opts)
		})
	}
	for _, opts := range []fetch.Options{
		{UserAgent: "bot http://a.test/\r\nX-Evil: 1"},
		{UserAgent: "bot http://a.test/", Header: http.Header{"From": {"a@b.test\x00"}}},
		{UserAgent: "bot http://a.test/", Reach: fetch.Anywhere + 1},
	} {
		_, err := fetch.New(opts)
		require.Error(t, err, "New(%+v)", opts)
	}
}

func TestGetReportsTheExchange(t *testing.T) {
	const head = "HTTP/1.1 203 Not  Quite\r\nserver: x\r\nX-B:  two \r\nX-A: 1\r\n" +
		"ETag: \"v1\"\r\nLast-Modified: Sat, 01 Jan 2000 00:00:00 GMT\r\ncontent-length: 5\r\n\r\n"
	base := listen(t, says(head+"hello"))
	c := newClient(t, fetch.Options{
		UserAgent: "testbot (+http://a.test/bot)", Header: http.Header{"From": {"bot@a.test"}}, Reach: fetch.Loopback,
	})
	before := time.Now()
	r := get(t, c, base+"/a b?c#frag")
	host := strings.TrimPrefix(base, "http://")

	require.Equal(t, base+"/a%20b?c", r.URL)
	require.Equal(t, 203, r.Status)
	require.Equal(t, "HTTP/1.1", r.Proto)
	require.Equal(t, "two", r.Header.Get("X-B"))
	require.Equal(t, head, string(r.Head))
	require.Equal(t, "GET /a%20b?c HTTP/1.1\r\nHost: "+host+
		"\r\nUser-Agent: testbot (+http://a.test/bot)\r\n"+
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"+
		"Accept-Encoding: gzip, zstd, deflate\r\nFrom: bot@a.test\r\n\r\n", string(r.RequestHead))
	require.True(t, r.HeadExact)
	require.Equal(t, "hello", string(r.Body))
	require.Same(t, &r.Raw[0], &r.Body[0], "without a coding, the two share memory")
	require.Equal(t, fetch.Whole, r.Truncated)
	require.Equal(t, fetch.Whole, r.RawCut)
	require.Equal(t, netip.MustParseAddrPort(host), r.Addr)
	require.Equal(t, 1, r.Attempts)
	require.False(t, r.Reused)
	require.False(t, r.NotModified())
	require.Empty(t, r.Location)
	require.Equal(t, fetch.Validators{
		ETag: `"v1"`, LastModified: "Sat, 01 Jan 2000 00:00:00 GMT",
	}, r.Validators())

	for _, next := range []time.Time{r.Start, r.WroteRequest, time.Now()} {
		require.False(t, next.Before(before), "%+v", r)
		before = next
	}
	require.False(t, r.FirstByte.Before(r.Start) || r.FirstByte.After(before), "%+v", r)
}

func TestValidators(t *testing.T) {
	const etag, date = `W/"1"`, "Sat, 01 Jan 2000 00:00:00 GMT"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag && r.Header.Get("If-Modified-Since") == date {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, "page")
	}))
	t.Cleanup(srv.Close)
	c := newClient(t, fetch.Options{})
	require.Equal(t, "page", string(get(t, c, srv.URL).Body))

	r, err := c.Do(t.Context(), fetch.Request{URL: srv.URL,
		Validators: fetch.Validators{ETag: etag, LastModified: date}})
	require.NoError(t, err)
	require.True(t, r.NotModified())
	require.Empty(t, r.Body)
	require.Equal(t, fetch.Whole, r.Truncated, "a missing body is not broken gzip")
	require.Equal(t, etag, r.Validators().ETag)

	r, err = c.Do(t.Context(), fetch.Request{URL: srv.URL,
		Validators: fetch.Validators{ETag: "x\r\nEvil: 1", LastModified: "\n"}})
	require.NoError(t, err)
	require.Equal(t, "page", string(r.Body), "invalid field values are not sent as validators")
	require.NotContains(t, string(r.RequestHead), "Evil")
}

func TestGetLeavesRedirectsToTheCaller(t *testing.T) {
	tests := []struct {
		name     string
		status   int
		location string
		want     string
	}{
		{"relative", 302, "../x?y#z", "http://HOST/x?y"},
		{"absolute", 301, "https://b.test:443", "https://b.test/"},
		{"with white space and raw bytes", 308, " /a b\xc3\xa9 ", "http://HOST/a%20b%C3%A9"},
		{"of another scheme", 303, "javascript:alert(1)", "javascript:alert(1)"},
		{"to a file", 307, "file:///etc/passwd", "file:///etc/passwd"},
		{"with credentials", 302, "http://u:p@b.test/", "http://b.test/"},
		{"unparsable", 302, "http://[/", ""},
		{"missing", 302, "", ""},
		{"of a response that is not a redirect", 201, "/x", ""},
		{"of a 304", 304, "/x", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := listen(t, says(fmt.Sprintf(
				"HTTP/1.1 %d X\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", tt.status, tt.location)))
			r := get(t, newClient(t, fetch.Options{}), base+"/dir/page")
			require.Equal(t, tt.status, r.Status)
			host := strings.TrimPrefix(base, "http://")
			require.Equal(t, strings.ReplaceAll(tt.want, "HOST", host), r.Location)
		})
	}
}

func TestGetReadsRetryAfter(t *testing.T) {
	tests := []struct {
		value string
		want  time.Duration
	}{
		{"", 0},
		{"120", 2 * time.Minute},
		{" 7 ", 7 * time.Second},
		{"-5", 0},
		{"1.5", 0},
		{"soon", 0},
		{"99999999999999999999", 365 * 24 * time.Hour},
		{"Sat, 01 Jan 2000 00:00:00 GMT", 0},
		{"Fri, 01 Jan 2999 00:00:00 GMT", 365 * 24 * time.Hour},
	}
	for _, tt := range tests {
		base := listen(t, says("HTTP/1.1 503 X\r\nRetry-After: "+tt.value+"\r\n\r\n"))
		r := get(t, newClient(t, fetch.Options{}), base)
		require.Equal(t, tt.want, r.RetryAfter, "Retry-After: %q", tt.value)
	}
}

// net/url would reject or rewrite some of these paths, but a server must see what a browser sends.
func TestGetSendsThePathAsItIs(t *testing.T) {
	tests := []struct{ path, want string }{
		{"", "/"},
		{"?", "/?"},
		{"/%zz/%2F?%?", "/%zz/%2F?%?"},
		{"/a//b/./c/../d", "/a//b/d"},
		{"/[x]|?{}|^", "/[x]|?{}|^"},
		{"//x/y?z", "http://HOST//x/y?z"},
		{"/?a=b?c&d", "/?a=b?c&d"},
	}
	base := listen(t, func(s *session) {
		line, _, _ := strings.Cut(s.request(), "\r\n")
		s.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(line), line))
	})
	c := newClient(t, fetch.Options{})
	for _, tt := range tests {
		want := strings.ReplaceAll(tt.want, "HOST", strings.TrimPrefix(base, "http://"))
		require.Equal(t, "GET "+want+" HTTP/1.1", string(get(t, c, base+tt.path).Body), tt.path)
	}
}

func TestGetRefusesBadURLs(t *testing.T) {
	c := newClient(t, fetch.Options{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			t.Error("a bad URL was resolved")
			return nil, nil
		},
	})
	for _, url := range []string{
		"", "/x", "a.test", "http://", "http://a b/", "ftp://a.test/", "file:///etc/passwd",
		"javascript:alert(1)", "data:,x", "http://a.test/" + strings.Repeat("x", fetch.MaxURL),
	} {
		e := fails(t, c, url)
		require.Equal(t, fetch.BadURL, e.Kind, url)
		require.False(t, e.Temporary())
		require.Less(t, len(e.Error()), 400)
	}
}

func TestGetSendsNoCredentials(t *testing.T) {
	base := listen(t, says("HTTP/1.1 200 OK\r\n\r\n"))
	r := get(t, newClient(t, fetch.Options{}), strings.Replace(base, "//", "//user:secret@", 1))
	require.NotContains(t, string(r.RequestHead), "Authorization")
	require.Equal(t, base+"/", r.URL)
	c := newClient(t, fetch.Options{})
	for _, url := range []string{"http://user:secret@192.0.2.1/a@b", `https:\\user:secret@192.0.2.1\`, "ftp://user:sec@ret@h", "http://me:secret@"} {
		_, err := c.Get(t.Context(), url)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
		require.NotContains(t, err.Error(), "ret@")
	}
}
