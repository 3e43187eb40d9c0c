package memnet_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/stretchr/testify/require"
)

func Example() {
	n := memnet.New()
	l, err := n.Listen("a.test:80")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "you asked for %s", r.URL.Path)
		}))
	}()
	client := http.Client{Transport: &http.Transport{DialContext: n.Dial}}
	resp, err := client.Get("http://a.test/page")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Printf("%s\n", body)
	// Output: you asked for /page
}

func TestDialWithoutAListenerIsRefused(t *testing.T) {
	n := memnet.New()
	_, err := n.Dial(t.Context(), "tcp", "a:1")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)

	l, err := n.Listen("a:1")
	require.NoError(t, err)
	_, err = n.Listen("a:1")
	require.ErrorIs(t, err, memnet.ErrInUse)
	require.Equal(t, "a:1", l.Addr().String())
	require.Equal(t, "memory", l.Addr().Network())

	require.NoError(t, l.Close())
	require.NoError(t, l.Close(), "a second Close has no effect")
	_, err = n.Dial(t.Context(), "tcp", "a:1")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	l, err = n.Listen("a:1")
	require.NoError(t, err, "the address is free again")
	require.NoError(t, l.Close())
}

func TestDialWaitsForAcceptOrItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		l, err := n.Listen("a:1")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		start := time.Now()
		_, err = n.Dial(ctx, "tcp", "a:1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 7*time.Second, time.Since(start))

		time.AfterFunc(time.Second, func() { l.Close() })
		_, err = n.Dial(t.Context(), "tcp", "a:1")
		require.ErrorIs(t, err, syscall.ECONNREFUSED, "closed while Dial waited")
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
	})
}
