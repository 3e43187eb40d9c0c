package robots

import (
	"sync"
	"time"
)

const (
	// MaxSize is how many bytes of a body are read: the least that RFC 9309 (2.5) permits.
	MaxSize = 500 << 10

	// MaxDelay is the longest delay that [Rules.Delay] reports. A file should be fetched anew
	// each day (RFC 9309, 2.4), so a longer delay would outlive the file that asks for it.
	MaxDelay = 24 * time.Hour
)

// File is a parsed robots.txt. Its methods are safe for concurrent use.
//
// It keeps the records, without comments and lines that have no key, in at most about five bytes
// for each byte of the body. Rules that were asked for come on top, once per token that the file
// names.
type File struct {
	denyAll bool // nobody may fetch anything, because the file could not be had
	skipped int
	text    string   // what the fields below point into
	rules   []rule   // of all groups, in the order of the file
	notes   []note   // the records that are neither rules nor names, in the order of the file
	groups  []group  // each owns what follows its begin in text, rules and notes
	agents  []naming // by token, then group; the token for all others is "*"

	mu   sync.Mutex
	sets map[int]*ruleset // compiled on demand, by the first place of their token in agents
}

// Parse reads the body of a robots.txt. It never fails: lines that make no sense are skipped,
// so any body, an HTML page too, gives a usable File.
//
// Only the first [MaxSize] bytes are read, and a line that does not end within them is dropped:
// half a pattern would forbid or allow too much. Lines end in CR, LF or both; more than 16,663
// bytes of one line, and what follows a NUL in it, are ignored. A byte order mark is skipped,
// and after one of UTF-16 the body is read as UTF-16.
//
// Who limits the body must let through more than MaxSize bytes, or the cut will not be noticed.
func Parse(body []byte) *File {
	p := newParser(min(len(body), MaxSize))
	for rec := range records(decode(body)) {
		p.add(rec)
	}
	f := p.file()
	f.skipped = max(0, len(body)-MaxSize)
	return f
}

// FromResponse turns the response to a request for a robots.txt into a File. Redirects are the
// caller's to follow, at least five of them, to any host. A 304 is no answer to this question:
// keep the File that it confirms.
//
//	status            RFC 9309            meaning
//	2xx               2.3.1.1             the body is parsed
//	3xx               2.3.1.2             redirects left over after five: everything is allowed
//	4xx except 429    2.3.1.3             there is no file: everything is allowed
//	429               2.3.1.4 by choice   the server is overloaded: nothing is allowed
//	5xx               2.3.1.4             unreachable: nothing is allowed
//	all else          2.3.1.4             0 stands for no response at all: nothing is allowed
//
// The RFC permits to treat 429 like other 4xx. Like Google, this package does not: a server
// that asks for fewer requests has not said that there are no rules.
//
// If reading the body failed half-way, pass the status 0: the missing half may forbid more.
func FromResponse(status int, body []byte) *File {
	switch {
	case status >= 200 && status < 300:
		return Parse(body)
	case status >= 300 && status < 500 && status != 429:
		return Parse(nil)
	}
	return &File{denyAll: true}
}

// Rules returns what the file asks of one crawler: all groups that name its product token,
// merged, or those for * if none does, or no rules if there are none of these either.
//
// The agent is a product token or a whole User-Agent header. The token is the leading run of
// letters, digits, and the characters _ - and . in it; of "Mozilla/5.0 (compatible;
// examplebot/1.0)" and its like it is the product after "compatible;". Case does not matter.
//
// In the file, as in Google's parser, a name ends at the first character that the RFC does not
// allow in a token: "examplebot/1.0" and "examplebot2" both name examplebot. An agent whose own
// token has such characters, like MJ12bot, is found under its full token only.
func (f *File) Rules(agent string) Rules {
	if f.denyAll {
		return Rules{set: nothing}
	}
	first, found := f.find(productToken(agent))
	if !found {
		first, found = f.find(anyAgent)
	}
	if !found {
		return Rules{}
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	set := f.sets[first]
	if set == nil {
		set = f.compile(f.naming(first))
		if f.sets == nil {
			f.sets = make(map[int]*ruleset)
		}
		f.sets[first] = set
	}
	return Rules{set: set}
}

// Skipped returns how many bytes of the body were not read because they lie beyond [MaxSize].
func (f *File) Skipped() int { return f.skipped }

// cost returns about how many bytes of memory the file takes, with the rules of one agent.
func (f *File) cost() int {
	const fixed = 1024 // the File, a ruleset, and what the allocator adds
	return fixed + 2*len(f.text) + 32*len(f.rules) + 24*len(f.notes) +
		12*len(f.groups) + 12*len(f.agents)
}
