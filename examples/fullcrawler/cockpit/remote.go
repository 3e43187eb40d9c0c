package cockpit

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spinneret-go/spinneret/archive"
)

// A running crawl has exclusive use of its directory. So its live page offers what the commands do.
func (c *Crawl) remoteCommands(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/check", c.remoteCheck)
	mux.HandleFunc("GET /api/snapshot", c.withStore(func(w http.ResponseWriter, r *http.Request) error {
		q := querying{
			at: r.FormValue("at"), host: r.FormValue("host"), site: r.FormValue("site"),
			prefix: r.FormValue("prefix"), failed: r.FormValue("failed") != "",
		}
		query, err := q.query()
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		return list(c.Store, query, w)
	}))
	for form, export := range exports {
		mux.HandleFunc("GET /api/export/"+form, c.withStore(
			func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("Content-Disposition", "attachment; filename=crawl."+form)
				w.Header().Set("Content-Type", "application/octet-stream")
				return export(w, c.Store)
			}))
	}
}

// withStore responds with an error if there is no archive, or if the handler returns an error.
func (c *Crawl) withStore(
	answer func(http.ResponseWriter, *http.Request) error,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := errNoArchive
		if c.Store != nil {
			err = answer(w, r)
		}
		if err != nil {
			c.Log.Error("live page", "path", r.URL.Path, "error", err)
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}
}

// remoteCheck reads all pages, and compares the archive with its checksums, as check does. What
// check finds out about the pages' index would take the crawl's exclusive use of it.
func (c *Crawl) remoteCheck(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	n := 0
	var damage error
	for _, err := range c.Pages.All() {
		if damage = err; damage != nil || r.Context().Err() != nil {
			break
		}
		n++
	}
	if damage != nil {
		fmt.Fprintf(w, "pages            DAMAGED: %v\n", damage)
	} else {
		fmt.Fprintf(w, "pages            %d, all can be read; fullcrawler check also checks their index\n", n)
	}
	if c.Store == nil {
		fmt.Fprintln(w, "archive          none")
		return
	}
	checked, err := c.Store.Verify(r.Context(), func(f archive.Fault) {
		fmt.Fprintf(w, "%s:%d: %s: %v\n", f.File, f.Offset, f.URL, f.Err)
	})
	if err != nil {
		fmt.Fprintf(w, "archive          %v\n", err)
		return
	}
	fmt.Fprintf(w, "archive          %s\n", verified(checked))
}

// Listen serves the live page, and below it the archive, until the crawl is closed. If other
// machines can reach it, it needs a token.
func (c *Crawl) Listen(addr string) (at string, err error) {
	if exposed(addr) {
		if c.liveToken, err = openToken(c.Cfg.Out); err != nil {
			return "", err
		}
	}
	return c.serve(addr, c.StatusHandler(addr))
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

func (c *Crawl) serve(addr string, handler http.Handler) (at string, err error) {
	l, err := listen(addr)
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	c.Servers = append(c.Servers, server)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			c.Log.Error("live page", "error", err)
		}
	}()
	return "http://" + l.Addr().String() + "/", nil
}
