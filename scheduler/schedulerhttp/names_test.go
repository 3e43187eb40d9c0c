package schedulerhttp_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// TestInternationalNames: all spellings of a name are one host, and the one that is sent to: by its
// own tables, net/http would dial ss.test for a capital sharp s.
func TestInternationalNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			sent = append(sent, r.URL.Host)
			require.Equal(t, r.URL.Host, r.Host)
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
		}), scheduler.Options{})
		start := time.Now()
		for _, url := range []string{"http://bücher.test/", "http://xn--bcher-kva.test/", "http://BÜCHER.test.:8080/", "http://\u1e9e.test/"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			require.NoError(t, err)
			resp, err := transport.RoundTrip(r)
			require.NoError(t, err)
			require.Same(t, r, resp.Request)
			require.Equal(t, url, "http://"+r.URL.Host+"/", "requests do not change")
			require.NoError(t, resp.Body.Close())
		}
		require.Equal(t, 10*time.Second, time.Since(start))
		require.Equal(t, []string{"xn--bcher-kva.test", "xn--bcher-kva.test", "xn--bcher-kva.test:8080", "xn--zca.test"}, sent)
		require.True(t, transport.Hosts().Explain("xn--bcher-kva.test").Known)
	})
}

// TestNamesAreSent as they wait: what a proxy says of vic%74im.test, which no name server knows, would
// be said of victim.test.
func TestNamesAreSent(t *testing.T) {
	for host, want := range map[string]string{
		"vic%2574im.test:8080":    "victim.test:8080",
		"b%25C3%25BCcher.test":    "xn--bcher-kva.test",
		"victim.test.":            "victim.test.",
		"Victim.test":             "Victim.test",
		"\u212aelvin.test":        "kelvin.test",
		"0xc0.0.513:80":           "192.0.2.1:80",
		"[fe80::1%25eth0]:8080":   "[fe80::1%eth0]:8080",
		"[2001:db8:0::0001]:8080": "[2001:db8:0::0001]:8080",
	} {
		transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			require.Equal(t, want, r.URL.Host, host)
			require.Equal(t, want, r.Host, host)
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
		}), scheduler.Options{})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/", nil)
		require.NoError(t, err)
		_, err = transport.RoundTrip(r)
		require.NoError(t, err)
	}
}

// TestNamesOfNoHost: by its own tables, net/http would dial victim.test, as if that were a proxy.
func TestNamesOfNoHost(t *testing.T) {
	transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		t.Error("sent to", r.URL.Host)
		return nil, errors.New("sent")
	}), scheduler.Options{})
	for _, name := range []string{"vic" + strings.Repeat("\u00ad", 300) + "tim.test", "a\ufffd.test", "1.2.3.４.5", "victim.test.."} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+name+"/", nil)
		require.NoError(t, err)
		_, err = transport.RoundTrip(r)
		require.ErrorContains(t, err, "no host has the name")
	}
}
