package clients

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/require"
)

// facts are what clients ask of an error.
func facts(err error) (all []string) {
	note := func(name string, ok bool) {
		if ok {
			all = append(all, name)
		}
	}
	if err == nil {
		return []string{"none"}
	}
	var op *net.OpError
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var netError net.Error
	var record tls.RecordHeaderError
	note("os.IsTimeout", os.IsTimeout(err))
	note("net.Error that is a timeout", errors.As(err, &netError) && netError.Timeout())
	note("context.Canceled", errors.Is(err, context.Canceled))
	note("context.DeadlineExceeded", errors.Is(err, context.DeadlineExceeded))
	note("the caller's cause", errors.Is(err, errCause))
	note("io.EOF", errors.Is(err, io.EOF))
	note("io.ErrUnexpectedEOF", errors.Is(err, io.ErrUnexpectedEOF))
	note("ECONNREFUSED", errors.Is(err, syscall.ECONNREFUSED))
	note("ECONNRESET", errors.Is(err, syscall.ECONNRESET))
	note("http.ErrSchemeMismatch", errors.Is(err, http.ErrSchemeMismatch))
	note("http.ErrBodyReadAfterClose", errors.Is(err, http.ErrBodyReadAfterClose))
	note("gzip.ErrHeader", errors.Is(err, gzip.ErrHeader))
	note("gzip.ErrChecksum", errors.Is(err, gzip.ErrChecksum))
	note("tls.RecordHeaderError", errors.As(err, &record))
	note("net.OpError", errors.As(err, &op))
	note("net.DNSError not found", errors.As(err, &dns) && dns.IsNotFound)
	note("tls.CertificateVerificationError", errors.As(err, &certificate))
	note("x509.UnknownAuthorityError", errors.As(err, &unknown))
	note("x509.HostnameError", errors.As(err, &host))
	for _, words := range []string{
		"unsupported protocol scheme", "invalid header", "stopped after 10 redirects", "malformed HTTP", "gzip: invalid header",
		"no such host", "connection refused", "x509: ", "no Host in request URL", "invalid port",
	} {
		note(words, strings.Contains(err.Error(), words))
	}
	again, _ := retryablehttp.DefaultRetryPolicy(context.Background(), nil, err)
	note("retried by go-retryablehttp", again)
	return all
}

var errCause = errors.New("the caller's cause")

// TestErrors compares what clients ask of the errors.
func TestErrors(t *testing.T) {
	plain, secure := started(t, (*httptest.Server).Start, nil), started(t, (*httptest.Server).StartTLS, nil)
	closed := httptest.NewServer(nil)
	closed.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(secure.Certificate())
	base := named(plain.URL, "site.test")
	get := func(url string) func(*http.Client) error {
		return func(c *http.Client) error {
			resp, err := c.Get(url)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			return err
		}
	}
	with := func(url string, ctx context.Context, end func()) func(*http.Client) error {
		return func(c *http.Client) error {
			ctx := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
				WroteRequest: func(httptrace.WroteRequestInfo) { end() },
			})
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				return err
			}
			resp, err := c.Do(r)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			return err
		}
	}
	soon := func(url string) func(*http.Client) error {
		return func(c *http.Client) error {
			again := *c
			again.Timeout = 50 * time.Millisecond
			return get(url)(&again)
		}
	}
	for name, tt := range map[string]struct {
		roots *x509.CertPool
		do    func(*http.Client) error
	}{
		"client timeout before the head":   {do: soon(base + "/slow")},
		"client timeout in the body":       {do: soon(base + "/drip")},
		"an unknown host":                  {do: get(named(plain.URL, "missing.test"))},
		"connection refused":               {do: get(closed.URL)},
		"an unknown authority":             {do: get(secure.URL)},
		"a certificate of another host":    {do: get(named(secure.URL, "site.test")), roots: trusted},
		"HTTPS of a server without":        {do: get(strings.Replace(base, "http:", "https:", 1))},
		"a host that is none":              {do: get("http://")},
		"a port that is none":              {do: get("http://site.test:99999/")},
		"a body that is cut":               {do: get(base + "/cut")},
		"a chunk that is cut":              {do: get(base + "/cut-chunk")},
		"a connection that is reset":       {do: get(base + "/reset")},
		"gzip that is cut":                 {do: get(base + "/cut-gzip")},
		"gzip with another checksum":       {do: get(base + "/bad-gzip")},
		"a body that is read when closed":  {do: afterClose(base + "/")},
		"a connection that ends at once":   {do: get(base + "/nothing")},
		"not HTTP":                         {do: get(base + "/malformed")},
		"another scheme":                   {do: get("gopher://site.test/")},
		"too many redirects":               {do: get(base + "/loop")},
		"gzip that is none":                {do: get(base + "/gzip")},
		"a field that cannot be sent":      {do: func(c *http.Client) error { return invalidField(c, base) }},
		"canceled":                         {do: func(c *http.Client) error { return canceled(with, base, nil)(c) }},
		"canceled with a cause":            {do: func(c *http.Client) error { return canceled(with, base, errCause)(c) }},
		"a deadline that has passed":       {do: func(c *http.Client) error { return late(with, base, -time.Second)(c) }},
		"a deadline that passes meanwhile": {do: func(c *http.Client) error { return late(with, base, 50*time.Millisecond)(c) }},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.roots == nil {
				tt.roots = x509.NewCertPool()
			}
			all := sameFromOutside(t, tt.roots, true, base)
			want := facts(tt.do(&http.Client{Transport: all["net/http"]}))
			t.Logf("%s", strings.Join(want, ", "))
			for stack, transport := range all {
				err := tt.do(&http.Client{Transport: transport})
				require.Equal(t, want, facts(err), "%s: %v", stack, err)
			}
		})
	}
}

func invalidField(c *http.Client, base string) error {
	r, err := http.NewRequest(http.MethodGet, base, nil)
	if err != nil {
		return err
	}
	r.Header.Set("X-Odd", "one\r\nX-Two: two")
	_, err = c.Do(r)
	return err
}

type withFunc = func(string, context.Context, func()) func(*http.Client) error

func canceled(with withFunc, base string, cause error) func(*http.Client) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	return with(base+"/slow", ctx, func() { cancel(cause) })
}

func late(with withFunc, base string, after time.Duration) func(*http.Client) error {
	return func(c *http.Client) error {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		defer cancel()
		return with(base+"/slow", ctx, func() {})(c)
	}
}

func afterClose(url string) func(c *http.Client) error {
	return func(c *http.Client) error {
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		if err := resp.Body.Close(); err != nil {
			return err
		}
		_, err = resp.Body.Read(make([]byte, 1))
		return err
	}
}
