// Package message encodes the messages between the modules of a crawl.
//
// A message carries a run of [Item] values for one partition: what the paper (Ueda et al., "A parallel
// distributed crawler of producer-consumer modules") calls CrawlingData, some dozens at a time, each a
// line of JSON. Messages can be joined and cut at any line, and items need no numbers: the broker
// commits each message once, together with the state that has caused it (see package jet).
//
// Partitions are chosen by [Hash], which is the same on every machine and in every version.
package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrCorrupt is wrapped by the errors of [Decode].
var ErrCorrupt = errors.New("message: corrupt")

// A Module is one kind of step of the crawl.
type Module uint8

// The modules. Their numbers travel in messages. Do not change them; add new ones at the end.
const (
	Dedupe Module = iota // lets each URL pass once, by h(URL)
	Hosts                // knows addresses and robots.txt, by h(host)
	Fetch                // schedules, fetches, stores and parses, by h(address)
	modules
)

// Modules returns all modules, in the order of the flow.
func Modules() []Module { return []Module{Dedupe, Hosts, Fetch} }

var moduleNames = [modules]string{"dedupe", "hosts", "fetch"}

// String returns the name of the module on the command line and in subjects.
func (m Module) String() string {
	if m < modules {
		return moduleNames[m]
	}
	return fmt.Sprintf("module %d", uint8(m))
}

// ParseModule reads the name of a module.
func ParseModule(name string) (Module, error) {
	if m := slices.Index(moduleNames[:], name); m >= 0 {
		return Module(m), nil
	}
	return 0, fmt.Errorf("module %q: want dedupe, hosts or fetch", name)
}

// A Kind is the type of an Item. Switchers use it to choose the next module.
type Kind uint8

// The kinds. Their numbers travel in messages. Do not change them; add new ones at the end.
const (
	Page    Kind = iota + 1 // a page to be fetched
	Rules                   // a robots.txt to be fetched
	Answer                  // the result of a request for a robots.txt
	Located                 // the result of a lookup
	Visited                 // the result of a visit, and when to visit the page again
	Sitemap                 // a sitemap to be fetched
	kinds
)

// An Item is one URL and what is known about it so far. It is not safe for concurrent use.
type Item struct {
	Kind  Kind   `json:"k"`
	URL   string `json:"u"`           // in canonical form; of Located the host's name
	Depth uint32 `json:"d,omitempty"` // links between the nearest seed and this URL
	Hops  uint32 `json:"h,omitempty"` // redirects since the last link, or since the robots.txt itself

	Addr  netip.Addr    `json:"a,omitzero"`  // of the host, once it is known
	Delay time.Duration `json:"w,omitempty"` // that the site asks for between two requests; 0 if it does not

	For      string `json:"for,omitempty"`      // the robots.txt that Rules and Answer are about, before redirects
	Status   uint32 `json:"status,omitempty"`   // HTTP status of an Answer; 0 if there was none, 1 if the operator forbids the request
	Location string `json:"location,omitempty"` // where an Answer redirects to
	Body     []byte `json:"body,omitempty"`     // of an Answer, cut to the maximum size of a robots.txt

	Round   uint32    `json:"round,omitempty"`  // times that a plan has sent the page out before this one
	Due     time.Time `json:"due,omitzero"`     // of Visited: when to visit the page again; zero means never. Whole seconds
	Until   time.Time `json:"t,omitzero"`       // how long robots.txt is known to allow the page; zero if not known. Whole seconds
	LastMod time.Time `json:"lastmod,omitzero"` // last change of the page according to a sitemap; zero if unknown. Whole seconds
	State   []byte    `json:"state,omitempty"`  // state of the page from earlier visits, for module fetch
	Again   bool      `json:"again,omitempty"`  // the page has passed before
}

// A Dest is a partition of a module.
type Dest struct {
	To   Module
	Part int
}

// String returns the name of the partition in subjects and in the output for operators.
func (d Dest) String() string { return fmt.Sprintf("%s.%d", d.To, d.Part) }

// ParseDest is the inverse of String.
func ParseDest(name string) (d Dest, ok bool) {
	module, part, _ := strings.Cut(name, ".")
	var err, bad error
	d.To, err = ParseModule(module)
	d.Part, bad = strconv.Atoi(part)
	return d, err == nil && bad == nil
}

// Encode appends items to a message, which is nil at first, and returns the longer slice.
func Encode(dst []byte, items ...Item) []byte {
	buf := bytes.NewBuffer(dst)
	lines := json.NewEncoder(buf)
	lines.SetEscapeHTML(false) // URLs have many an ampersand
	for i := range items {
		_ = lines.Encode(&items[i]) // cannot fail for these types
	}
	return buf.Bytes()
}

// Decode reads the items of a message. It fails with [ErrCorrupt].
func Decode(data []byte) (items []Item, err error) {
	for line := range bytes.Lines(data) {
		var it Item
		if err := json.Unmarshal(line, &it); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if it.Kind == 0 || it.Kind >= kinds {
			return nil, fmt.Errorf("%w: kind %d", ErrCorrupt, it.Kind)
		}
		items = append(items, it)
	}
	return items, nil
}
