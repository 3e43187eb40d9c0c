package crawl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// A record is a line of a chunk of the hosts' state: all that is known of a host or of a server. If
// more items wait than fit, lines follow that have nothing but more of them.
type record struct {
	Host   string     `json:",omitempty"`
	Addr   netip.Addr `json:",omitzero"`
	Pages  int        `json:",omitempty"`
	Until  time.Time  `json:",omitzero"`
	Asking bool       `json:",omitempty"`
	Silent bool       `json:",omitempty"`

	Server string        `json:",omitempty"`
	Rules  *robots.Entry `json:",omitempty"` // nil if nothing is known yet

	More bool `json:",omitempty"` // the line goes on with the items of the one before

	Waiting []byte `json:",omitempty"` // a message with the items
}

// A record is written whole whenever any of it has changed, so that later ones need not know what
// earlier ones said. JSON costs some bytes; a chunk is written once in a second at most.

// Bounds of the items of a record. With a robots.txt of the greatest length, which is a third
// longer in JSON, it stays below what a message of the broker may have. Without the second one a
// site could make up URLs that are too long for it, and no process could keep its state any more.
const (
	maxWaiting      = 256
	maxWaitingBytes = 128 << 10
)

// fitting returns how many of the items go into one record, of which there is at least one.
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
			Host: name, Addr: h.addr, Pages: h.pages, Until: h.until, Asking: h.asking,
			Silent: h.silent,
		}, h.waiting)
	}
	for file := range changed(all, s.servers, s.dirtyServers) {
		r := record{Server: file}
		if entry, known := s.rules.Cache.Entry(file); known {
			r.Rules = &entry
		}
		w.write(r, s.rules.Waiting(file))
	}
	clear(s.dirtyHosts)
	clear(s.dirtyServers)
	w.end()
	return w.chunks
}

// changed returns the keys of what is to be written.
func changed[V any](all bool, whole map[string]V, dirty map[string]struct{}) map[string]struct{} {
	if !all {
		return dirty
	}
	keys := make(map[string]struct{}, len(whole))
	for key := range whole {
		keys[key] = struct{}{}
	}
	return keys
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
		if n > 0 {
			m := message.Message{Items: waiting[:n]}
			r.Waiting = m.Append(nil)
		}
		line, _ := json.Marshal(r) // of these types it cannot fail
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

// Load takes in hosts and servers, each in the place of what was known of it before.
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
	var waiting []message.Item
	if r.Waiting != nil {
		m, err := message.Decode(r.Waiting)
		if err != nil {
			return err
		}
		waiting = m.Items
	}
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
				addr: r.Addr, until: r.Until, pages: r.Pages, asking: r.Asking, silent: r.Silent,
			}
		}
		h.waiting = append(h.waiting, waiting...)
	case r.Server != "":
		return s.loadServer(r, waiting)
	default:
		return errors.New("neither host nor server")
	}
	s.waiting += len(waiting)
	return nil
}

// loadServer has the items wait once more. The request that they wait for is out already.
func (s *hosts) loadServer(r record, waiting []message.Item) error {
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
	known, _ := s.rules.Cache.Entry(r.Server) // the items came when that had expired
	for _, it := range waiting {
		if file, err := robotstxt.Locate(it.URL); err != nil || file != r.Server {
			return fmt.Errorf("item %q at server %q", it.URL, r.Server)
		}
		if _, err := s.rules.Lookup(it.URL, it, known.Expires); err != nil {
			return err
		}
	}
	return nil
}
