package crawl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/netip"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// A record is a line of a chunk of the hosts' state: everything about a host or a server. If more
// items wait than fit, the lines that follow contain only further items.
//
// A change rewrites the whole record, so later records need not refer to earlier ones. JSON costs
// some bytes, but a chunk is written at most once a second.
type record struct {
	Host   string     `json:",omitempty"`
	Addr   netip.Addr `json:",omitzero"`
	Home   int        `json:",omitempty"`
	Pages  int        `json:",omitempty"`
	Until  time.Time  `json:",omitzero"`
	Asking bool       `json:",omitempty"`
	Silent bool       `json:",omitempty"`

	Server string        `json:",omitempty"`
	Rules  *robots.Entry `json:",omitempty"` // nil if nothing is known yet
	Target string        `json:",omitempty"` // of the redirects so far
	Hops   int           `json:",omitempty"` // how many those were

	More bool `json:",omitempty"` // continues the items of the previous line

	Waiting []message.Item `json:",omitempty"`
}

// Bounds of the items of a record. Together with a robots.txt of maximum length, which JSON makes a
// third longer, they keep it below the size limit of the broker's messages. Without the bound of
// bytes, a site could make a record exceed that limit by long URLs, and then no process could save
// the state.
const (
	maxWaiting      = 256
	maxWaitingBytes = 128 << 10
)

// fitting returns how many of the items go into one record: at least one, if there are any.
func fitting(items []message.Item) int {
	size := 0
	for i, it := range items[:min(len(items), maxWaiting)] {
		if size += len(it.URL) + len(it.For) + len(it.State); size > maxWaitingBytes && i > 0 {
			return i
		}
	}
	return min(len(items), maxWaiting)
}

// Changes returns the hosts and servers that have changed.
func (s *hosts) Changes(all bool, size int) [][]byte {
	w := recordWriter{size: size}
	for name := range changed(all, s.hosts, s.dirtyHosts) {
		h := s.hosts[name]
		w.write(record{
			Host: name, Addr: h.addr, Home: h.home, Pages: h.pages, Until: h.until, Asking: h.asking,
			Silent: h.silent,
		}, h.waiting)
	}
	for file := range changed(all, s.servers, s.dirtyServers) {
		r := record{Server: file}
		if entry, known := s.rules.Cache.Entry(file); known {
			r.Rules = &entry
		}
		if req, out := s.rules.Cache.InFlight(file); out && req.Hop > 0 {
			r.Target, r.Hops = req.URL, req.Hop
		}
		w.write(r, s.rules.Waiting(file))
	}
	clear(s.dirtyHosts)
	clear(s.dirtyServers)
	w.end()
	return w.chunks
}

// changed returns the keys to write.
func changed[V any](all bool, whole map[string]V, dirty map[string]struct{}) iter.Seq[string] {
	if all {
		return maps.Keys(whole)
	}
	return maps.Keys(dirty)
}

// A recordWriter cuts lines into chunks.
type recordWriter struct {
	size   int
	buf    []byte
	chunks [][]byte
}

func (w *recordWriter) write(r record, waiting []message.Item) {
	for {
		n := fitting(waiting)
		r.Waiting = waiting[:n]
		line, _ := json.Marshal(r) // cannot fail for these types
		if len(w.buf)+len(line) > w.size {
			w.end()
		}
		w.buf = append(append(w.buf, line...), '\n')
		if waiting = waiting[n:]; len(waiting) == 0 {
			return
		}
		r = record{Host: r.Host, Server: r.Server, More: true}
	}
}

func (w *recordWriter) end() {
	if len(w.buf) > 0 {
		w.chunks, w.buf = append(w.chunks, w.buf), nil
	}
}

// Load adds hosts and servers. Each replaces the previous state of the same one.
func (s *hosts) Load(chunk []byte) error {
	s.loaded = true
	lines := json.NewDecoder(bytes.NewReader(chunk))
	for {
		var r record
		err := lines.Decode(&r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.load(r)
		}
		if err != nil {
			return fmt.Errorf("crawl: state of hosts: %w", err)
		}
	}
}

func (s *hosts) load(r record) error {
	switch {
	case r.Host != "":
		h := s.hosts[r.Host]
		if h == nil {
			h = &host{}
			s.hosts[r.Host] = h
		}
		if !r.More {
			s.waiting -= len(h.waiting)
			*h = host{
				addr: r.Addr, home: r.Home, until: r.Until, pages: r.Pages, asking: r.Asking, silent: r.Silent,
			}
		}
		h.waiting = append(h.waiting, r.Waiting...)
	case r.Server != "":
		return s.loadServer(r)
	default:
		return errors.New("neither host nor server")
	}
	s.waiting += len(r.Waiting)
	return nil
}

// loadServer lets the items wait again. Their request is already in flight.
func (s *hosts) loadServer(r record) error {
	if file, err := robotstxt.Locate(r.Server); err != nil || file != r.Server {
		return fmt.Errorf("server %q", r.Server)
	}
	s.servers[r.Server] = struct{}{}
	if req, out := s.rules.Cache.InFlight(r.Server); out && !r.More {
		s.rules.Abandon(req)
	}
	if r.Rules != nil {
		if r.Rules.URL != r.Server {
			return fmt.Errorf("rules of %q at server %q", r.Rules.URL, r.Server)
		}
		if err := s.rules.Cache.Restore(*r.Rules); err != nil {
			return err
		}
	}
	known, _ := s.rules.Cache.Entry(r.Server) // the items arrived after its expiry
	for _, it := range r.Waiting {
		if file, err := robotstxt.Locate(it.URL); err != nil || file != r.Server {
			return fmt.Errorf("item %q at server %q", it.URL, r.Server)
		}
		if _, _, err := s.rules.Lookup(it.URL, it, known.Expires); err != nil {
			return err
		}
	}
	if req, out := s.rules.Cache.InFlight(r.Server); out && r.Hops > 0 {
		// An answer to a request before this redirect says nothing, as with the previous owner.
		req.Hop = r.Hops - 1
		redirect := robots.Response{Status: http.StatusFound, Header: http.Header{"Location": {r.Target}}}
		_, _, err := s.rules.Store(req, redirect, known.Expires)
		return err
	}
	return nil
}
