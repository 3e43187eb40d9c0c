package cockpit

import (
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

// Listen serves the live page, and below it the archive, until the crawl is closed. If other
// machines can reach it, it needs a token.
func (c *Crawl) Listen(addr string) (at string, err error) {
	if exposed(addr) {
		if c.liveToken, err = openToken(c.Cfg.Out); err != nil {
			return "", err
		}
	}
	l, err := listen(addr)
	if err != nil {
		return "", err
	}
	server := newServer(c.StatusHandler(addr))
	c.Servers = append(c.Servers, server)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			c.Log.Error("live page", "error", err)
		}
	}()
	return "http://" + l.Addr().String() + "/", nil
}

// listen listens at the address of a flag -listen.
func listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("-listen: %w: choose another address, such as 127.0.0.1:0 for any free port", err)
	}
	return l, nil
}

// tryListen returns the error that listen would return.
func tryListen(addr string) error {
	if addr == "" {
		return nil
	}
	l, err := listen(addr)
	if err != nil {
		return err
	}
	return l.Close()
}

// newServer returns a server for browsers.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: log.New(os.Stderr, "fullcrawler: ", 0), // that of package log is silent, as it is net/http's for servers that we visit
	}
}
