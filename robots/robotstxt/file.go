package robotstxt

import (
	"hash/maphash"
	"iter"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/robots/internal/rep"
)

const (
	// MaxSize is how many bytes of a body are parsed: the minimum of RFC 9309 (2.5). Read one byte
	// more to detect truncation.
	MaxSize = 500 << 10

	// MaxDelay is the longest delay that [Rules.Delay] reports. A file should be fetched again
	// each day (RFC 9309, 2.4), so a longer delay would outlive the file that asks for it.
	MaxDelay = 24 * time.Hour
)

// A File is a parsed robots.txt. Its methods are safe for concurrent use. The nil File is one that
// could not be fetched: its Rules forbid everything.
//
// It keeps the text, and rereads it to find records other than User-agent, Allow and Disallow.
// Rules are compiled on demand, once for each crawler that the file names.
type File struct {
	text   string
	groups []group
	names  []name // in the order of the file

	mu    sync.Mutex
	rules map[string]*ruleset // by the token that selects the groups
	size  atomic.Int64        // of the rules
}

// A group is what follows consecutive User-agent lines, up to the next such line.
type group struct {
	start uint32 // offset of its first line in the text
	lines uint32 // number of lines before it
}

// A name is a crawler's name in a User-agent line.
type name struct {
	start uint32
	size  uint16
	group uint32
}

// Parse reads the body of a robots.txt. It never fails: malformed lines are skipped, so any body,
// even an HTML page, gives a usable File.
//
// Only the first [MaxSize] bytes are read. A line that does not end within them is dropped, since
// half a pattern would forbid or allow too much. Lines end in CR, LF or both. Beyond 16,663 bytes a
// line is ignored, as is what follows a NUL. A byte order mark is skipped; after that of UTF-16 the
// body is read as UTF-16.
func Parse(body []byte) *File {
	f := &File{text: decode(body)}
	open := false // the next User-agent line joins the last group
	for l := range f.lines() {
		switch l.kind {
		case agentKind:
			// A line without a name starts a group, too. Otherwise its rules would go to the group
			// above.
			if !open {
				f.groups = append(f.groups, group{l.start, l.number - 1})
				open = true
			}
			f.addName(l)
		case allowKind, disallowKind:
			// Nothing else ends a group: files put Crawl-delay and unknown lines between User-agent
			// lines that belong together.
			open = false
		}
	}
	f.groups, f.names = exact(f.groups), exact(f.names)
	return f
}

func (f *File) addName(l line) {
	group := uint32(len(f.groups) - 1)
	if token := rep.NameOf(l.value); token != "" {
		f.names = append(f.names, name{l.valueStart, uint16(len(token)), group})
	}
}

// exact returns a copy without spare capacity, since files are kept for a long time.
func exact[T any](list []T) []T { return append([]T(nil), list...) }

func (f *File) lines() iter.Seq[line] {
	if f == nil {
		return lines("", 0, 0, 0)
	}
	return lines(f.text, 0, uint32(len(f.text)), 0)
}

// Rules returns what the file asks of one crawler: all groups that name it, merged. If there are
// none, it returns the groups for *.
//
// The agent is the crawler's product token, such as examplebot, or its whole User-Agent header.
// The token is the leading run of letters, digits, and the characters _ - and . in it; in headers
// such as "Mozilla/5.0 (compatible; examplebot/1.0)" it is the product after "compatible;". Case
// does not matter. A crawler whose name is anything else, such as "Example Bot", has no token, and
// obeys the groups for *.
//
// In the file, as in Google's parser, a name ends at the first character that the RFC does not
// allow in a token: "examplebot/1.0" and "examplebot2" both name examplebot. An agent whose own
// token has such characters, like MJ12bot, is found under its full token only.
func (f *File) Rules(agent string) Rules {
	if f == nil {
		return Rules{}
	}
	token := rep.OwnToken(agent)
	groups := f.groupsOf(token)
	if len(groups) == 0 {
		token = rep.AnyAgent
		groups = f.groupsOf(token)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	set := f.rules[token]
	if set == nil {
		set = f.compile(groups, token != rep.AnyAgent)
		if f.rules == nil {
			f.rules = make(map[string]*ruleset, 1)
		}
		f.rules[token] = set
		f.size.Add(int64(128 + 2*len(token) + set.size()))
	}
	return Rules{set}
}

// groupsOf returns the groups that name a token, in the order of the file, each once.
func (f *File) groupsOf(token string) (groups []uint32) {
	for _, n := range f.names {
		if token == "" || len(groups) > 0 && groups[len(groups)-1] == n.group {
			continue
		}
		if rep.Names(f.text[n.start:n.start+uint32(n.size)], token) {
			groups = append(groups, n.group)
		}
	}
	return groups
}

// linesOf yields the lines of one group.
func (f *File) linesOf(n uint32) iter.Seq[line] {
	end := uint32(len(f.text))
	if int(n)+1 < len(f.groups) {
		end = f.groups[n+1].start
	}
	return lines(f.text, f.groups[n].start, end, f.groups[n].lines)
}

// String returns the parsed text: the body as UTF-8 without a byte order mark, cut to MaxSize.
// [Parse] turns it into the same File again, so it is what to save. It costs nothing.
func (f *File) String() string {
	if f == nil {
		return ""
	}
	return f.text
}

// Size returns the approximate memory of the File in bytes, including all Rules compiled so far.
func (f *File) Size() int {
	if f == nil {
		return 0
	}
	return 256 + len(f.text) + len(f.text)/8 + 10*len(f.groups) + 14*len(f.names) + int(f.size.Load())
}

// Record is one line of a file that neither names a crawler nor allows or disallows a path.
type Record struct {
	Line  int    // in the file, from 1
	Key   string // as written
	Value string // as written, without comment and blanks around it; may be empty
}

// records skips User-agent, Allow and Disallow.
func records(lines iter.Seq[line]) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for l := range lines {
			switch l.kind {
			case agentKind, allowKind, disallowKind:
				continue
			}
			if !yield(Record{int(l.number), l.key, l.value}) {
				return
			}
		}
	}
}

// Sitemaps returns the sitemaps that the file names, each once, as written, in order. They are for
// all crawlers, and may be relative, on another host, or not a URL at all: see [File.SitemapURLs].
func (f *File) Sitemaps() (list []string) {
	seen := make(map[string]bool)
	for l := range f.lines() {
		if l.kind == sitemapKind && l.value != "" && !seen[l.value] {
			seen[l.value] = true
			list = append(list, l.value)
		}
	}
	return list
}

// SitemapURLs yields the sitemaps as absolute URLs, each once. The standard demands absolute URLs,
// but many files have a path. It is resolved against fileURL, where the file was found, as a
// browser resolves a link. Results that are not URLs of http, https or ftp are left out.
//
// A file may name 80,000 sitemaps, and fileURL may be long, so all URLs together may have hundreds
// of megabytes. None of them is kept here.
func (f *File) SitemapURLs(fileURL string) iter.Seq[string] {
	return func(yield func(string) bool) {
		base, err := url.Parse(fileURL)
		if err != nil {
			base = &url.URL{}
		}
		seed, seen := maphash.MakeSeed(), make(map[uint64]bool)
		for _, written := range f.Sitemaps() {
			found, err := base.Parse(written)
			if err != nil {
				continue
			}
			text := found.String()
			if _, err := rep.Origin(text); err != nil {
				continue
			}
			if hash := maphash.String(seed, text); !seen[hash] {
				seen[hash] = true
				if !yield(text) {
					return
				}
			}
		}
	}
}

// ErrLocate is wrapped by the errors of [Locate].
var ErrLocate = rep.ErrLocate

// Locate returns the location of the robots.txt for a URL (RFC 9309, 2.3): the same scheme, host
// and port. Two URLs with equal results share a file, so the result also serves as the key of a
// File.
//
// Scheme and host are returned in lower case, without user, path, query and default port. The url
// must be absolute, with the scheme http, https or ftp. A host name is not converted to Punycode:
// pass it in the form in which it will be requested.
func Locate(url string) (robotsURL string, err error) {
	origin, err := rep.Origin(url)
	if err != nil {
		return "", err
	}
	return origin + rep.Path, nil
}
