package fetch_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/brotli"
	"github.com/stretchr/testify/require"
)

// nginxConf serves files on two sockets in its directory, so it needs no port. HTTP/2 is enabled by
// the old directive: new versions only warn about it, and old versions do not know the new one.
const nginxConf = `
%s
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {}
http {
	access_log off;
	client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp;
	uwsgi_temp_path tmp; scgi_temp_path tmp;
	types { text/html html; }
	gzip on; gzip_min_length 100; gzip_http_version 1.0;
	%s
	server {
		listen unix:plain.sock;
		root files;
		location = /moved { return 301 /page.html; }
		location = /busy { add_header Retry-After 120 always; return 503; }
	}
	server {
		listen unix:tls.sock ssl http2;
		ssl_certificate cert.pem; ssl_certificate_key key.pem;
		root files;
	}
}
`

// nginxBrotli is Debian's path of the module for br, which then takes precedence over gzip.
const nginxBrotli = "/usr/lib/nginx/modules/ngx_http_brotli_filter_module.so"

// configured returns the configuration, and whether the server supports br.
func configured() (conf string, br bool) {
	if _, err := os.Stat(nginxBrotli); err != nil {
		return fmt.Sprintf(nginxConf, "", ""), false
	}
	return fmt.Sprintf(nginxConf, "load_module "+nginxBrotli+";",
		"brotli on; brotli_min_length 100;"), true
}

// writeCert writes the certificate of httptest, which is for example.com, and returns its issuer.
func writeCert(t *testing.T, dir string) *x509.CertPool {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	key, err := x509.MarshalPKCS8PrivateKey(srv.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: srv.Certificate().Raw},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	return pool
}

// nginx starts a server with one page, and returns how to reach it and whether it supports br.
func nginx(t *testing.T, page string) (opts fetch.Options, br bool) {
	path, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed")
	}
	dir := t.TempDir()
	roots := writeCert(t, dir)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "files"), 0o755))
	file := filepath.Join(dir, "files", "page.html")
	require.NoError(t, os.WriteFile(file, []byte(page), 0o644))
	changed := time.Date(2005, 1, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(t, os.Chtimes(file, changed, changed))
	conf, br := configured()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf), 0o644))
	cmd := exec.Command(path, "-p", dir, "-c", "nginx.conf", "-e", "error.log")
	cmd.Dir = dir
	require.NoError(t, cmd.Start())
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-gone
	})
	dial := func(ctx context.Context, _, addr string) (net.Conn, error) {
		name := "plain.sock"
		if strings.HasSuffix(addr, ":443") {
			name = "tls.sock"
		}
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, name))
	}
	for conn, err := dial(t.Context(), "", ":443"); ; conn, err = dial(t.Context(), "", ":443") {
		if err == nil {
			conn.Close()
			break
		}
		select {
		case err := <-gone:
			gone <- err
			log, _ := os.ReadFile(filepath.Join(dir, "error.log"))
			t.Skipf("nginx does not start: %v: %s", err, log)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return fetch.Options{
		Dial: dial, Resolve: resolveTo("127.0.0.1"), TLSConfig: &tls.Config{RootCAs: roots},
	}, br
}

// visitNginx requests the page, unconditionally and with each condition.
func visitNginx(t *testing.T, c *fetch.Client, url, proto, coding, page string) {
	first := get(t, c, url)
	require.Equal(t, 200, first.Status)
	require.Equal(t, proto, first.Proto)
	require.Equal(t, page, string(first.Body))
	require.Equal(t, coding, first.Header.Get("Content-Encoding"))
	require.Less(t, len(first.Raw), len(first.Body)/10)
	require.Equal(t, proto == "HTTP/1.1", first.HeadExact)
	require.Contains(t, string(first.Head), "nginx")
	require.Equal(t, proto == "HTTP/2.0", first.TLS != nil)

	v := first.Validators()
	require.Equal(t, "Sat, 01 Jan 2005 00:00:00 GMT", v.LastModified)
	require.NotEmpty(t, v.ETag)
	for _, v := range []fetch.Validators{v, {ETag: v.ETag}, {LastModified: v.LastModified}} {
		again, err := c.Do(t.Context(), fetch.Request{URL: url, Validators: v})
		require.NoError(t, err)
		require.True(t, again.NotModified(), "%+v", v)
		require.True(t, again.Reused)
		require.Empty(t, again.Raw)
	}
	changed, err := c.Do(t.Context(), fetch.Request{URL: url, Validators: fetch.Validators{ETag: `"another"`}})
	require.NoError(t, err)
	require.Equal(t, 200, changed.Status)
	require.Equal(t, first.Body, changed.Body)
	require.Equal(t, 404, get(t, c, url+"x").Status)
}

// TestNginx fetches from a common web server, over HTTP/1.1 and HTTP/2.
func TestNginx(t *testing.T) {
	page := strings.Repeat("<p>to be or not to be</p>", 500)
	opts, br := nginx(t, page)
	c := newClient(t, opts)
	opts.Brotli = brotli.New
	for _, tt := range []struct {
		name, url, proto, coding string
		c                        *fetch.Client
	}{
		{"HTTP/1.1", "http://example.com/page.html", "HTTP/1.1", "gzip", c},
		{"HTTP/2", "https://example.com/page.html", "HTTP/2.0", "gzip", c},
		{"br over HTTP/1.1", "http://example.com/page.html", "HTTP/1.1", "br", newClient(t, opts)},
		{"br over HTTP/2", "https://example.com/page.html", "HTTP/2.0", "br", newClient(t, opts)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.coding == "br" && !br {
				t.Skip("not installed: " + nginxBrotli)
			}
			visitNginx(t, tt.c, tt.url, tt.proto, tt.coding, page)
		})
	}
	moved := get(t, c, "http://example.com/moved")
	require.Equal(t, 301, moved.Status)
	require.Equal(t, "http://example.com/page.html", moved.Location)
	busy := get(t, c, "http://example.com/busy")
	require.Equal(t, 503, busy.Status)
	require.Equal(t, 2*time.Minute, busy.RetryAfter)
}
