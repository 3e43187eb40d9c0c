package robots

import (
	"slices"
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
type File struct {
	denyAll  bool // nobody may fetch anything, because the file could not be had
	skipped  int
	sitemaps []string
	rules    []rule  // of all groups, in the order of the file
	groups   []group // each owns the rules from its first to the next group's first

	// agents lists the groups of each product token in lower case, and of "*".
	agents map[string][]int32

	mu   sync.Mutex
	sets map[string]*ruleset // compiled on demand; at most one per key of agents
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
	p := parser{file: &File{
		skipped: max(0, len(body)-MaxSize),
		agents:  make(map[string][]int32),
		sets:    make(map[string]*ruleset),
	}}
	for rec := range records(decode(body)) {
		p.add(rec)
	}
	return p.file
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
	f := Parse(nil)
	f.denyAll = true
	return f
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
	token := productToken(agent)
	groups, found := f.agents[token]
	if !found {
		token = anyAgent
		groups = f.agents[token]
	}
	if len(groups) == 0 {
		return Rules{}
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	set := f.sets[token]
	if set == nil {
		set = f.compile(groups)
		f.sets[token] = set
	}
	return Rules{set: set}
}

// Sitemaps returns the sitemaps that the file names, each once, as written, in its order. They
// hold for all agents, and nothing says that they lie on the same host or are valid URLs.
func (f *File) Sitemaps() []string { return slices.Clone(f.sitemaps) }

// Skipped returns how many bytes of the body were not read because they lie beyond [MaxSize].
func (f *File) Skipped() int { return f.skipped }

// compile merges groups into the form that checks need. It is done on demand, because a file
// may hold thousands of groups and a crawler asks for one.
func (f *File) compile(groups []int32) *ruleset {
	set := &ruleset{}
	var list []pattern
	for _, g := range groups {
		end := len(f.rules)
		if int(g)+1 < len(f.groups) {
			end = int(f.groups[g+1].first)
		}
		rules := f.rules[f.groups[g].first:end]
		list = slices.Grow(list, len(rules))
		for i := range rules {
			list = appendPatterns(list, &rules[i])
		}
		set.askDelay(f.groups[g].delay)
	}
	set.setPatterns(list)
	return set
}
