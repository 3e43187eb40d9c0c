package stage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/simhash"
	"github.com/spinneret-go/spinneret/fetch"
	webpage "github.com/spinneret-go/spinneret/fetch/page"
	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/revisit"
)

// A State is the state of a page between visits. The zero State is that of a page that was never
// visited. It is not safe for concurrent use.
type State struct {
	History    revisit.History
	Hash       uint64           // of the content at the last visit with content
	Text       simhash.Print    // of the text then; zero if not requested
	Validators fetch.Validators // that came with it
	Failures   int              // failed visits in a row
	Due        int64            // when to visit it next, in Unix time; 0 means now

	// Interval is the revisit interval with which the page counts in its host's load, in seconds;
	// 0 if it does not count.
	Interval int64

	// Fresh is until when the page stays unchanged according to the server, in Unix time; 0 if
	// unknown.
	Fresh int64

	// Barred has a bit for each line of the operator's lists that excluded a link of the page: see BarredBy.
	Barred uint64

	LeftOut   bool // filters or limits of the operator exclude it
	Relink    bool // its links must be checked again: the filters were widened
	Postponed bool // a visit after others, or a retry, was due, but there was no room for it
}

// BarredBy returns the bit of a line in Barred. When the line is lifted, only pages with the bit have to
// be read again: 63 of 64 pages with links that other lines exclude have another one.
func BarredBy(line string) uint64 { return 1 << (durable.Sum([]byte(line)) % 64) }

// Visited reports whether the page was ever requested.
func (s State) Visited() bool { return !s.History.Last().IsZero() || s.Failures > 0 }

// Waits reports whether a crawl does not end before the next visit, whenever it is due.
func (s State) Waits() bool { return s.Postponed || !s.Visited() }

// Retries reports whether the next visit is a retry.
func (s State) Retries() bool { return s.Failures > 0 && !s.LeftOut }

// Longest bounds the interval between visits.
const Longest = 400 * 24 * time.Hour

// Seconds converts the seconds of a record to a Duration.
func Seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// maxValidator bounds the size of stored validators. Longer ones are rare, and only cost a full
// response.
const maxValidator = 256

// The first byte of a record has flags. Its highest bit is set in this form of records.
const (
	isSitemap = 1 << iota
	isNested
	wasVisited
	isLeftOut
	hasRelink
	isStrange
	isPostponed
	recordForm
)

// ErrRecord is returned for bytes that are not a record of a page.
var ErrRecord = errors.New("stage: not a record of a page")

// AppendRecord appends an item and the state of its page to b, without the URL. A page that was
// never visited takes a few bytes, others about a hundred.
func AppendRecord(b []byte, it Item, s State) []byte {
	visited := s != State{}
	b = append(b, recordForm|flag(it.Sitemap != nil, isSitemap)|flag(it.Sitemap != nil && it.Sitemap.Nested, isNested)|
		flag(visited, wasVisited)|flag(s.LeftOut, isLeftOut)|flag(s.Relink, hasRelink)|
		flag(it.Strange, isStrange)|flag(s.Postponed, isPostponed))
	b = binary.AppendUvarint(b, uint64(it.Depth))
	b = binary.AppendUvarint(b, uint64(it.Hops))
	b = binary.AppendVarint(b, it.LastMod)
	if it.Sitemap != nil {
		b = durable.AppendBytes(b, it.Sitemap.Server)
	}
	if !visited {
		return b
	}
	b, _ = s.History.AppendBinary(b) // it never fails
	b = binary.LittleEndian.AppendUint64(b, s.Hash)
	for _, n := range []uint64{s.Text.Words, s.Text.Near, s.Barred, uint64(s.Failures)} {
		b = binary.AppendUvarint(b, n)
	}
	for _, n := range []int64{s.Due, s.Interval, s.Fresh} {
		b = binary.AppendVarint(b, n)
	}
	b = durable.AppendBytes(b, short(s.Validators.ETag))
	return durable.AppendBytes(b, short(s.Validators.LastModified))
}

func flag(is bool, bit byte) byte {
	if is {
		return bit
	}
	return 0
}

func short(validator string) string {
	if len(validator) > maxValidator {
		return ""
	}
	return validator
}

// maxText bounds a text in a record.
const maxText = 1 << 20

// ReadRecord is the inverse of AppendRecord. The error is [ErrRecord], or wraps
// durable.ErrVersion.
func ReadRecord(url string, b []byte) (it Item, s State, err error) {
	d := durable.Decoder{B: b}
	flags := d.Byte()
	if !d.Bad && flags&recordForm == 0 { // the store has verified its bytes
		return it, s, fmt.Errorf("%w: a page in form %#x", durable.ErrVersion, flags)
	}
	it.URL = url
	it.Depth, it.Hops = d.Length(math.MaxInt32), d.Length(math.MaxInt32)
	it.LastMod = d.Varint()
	if flags&isSitemap != 0 {
		it.Sitemap = &Sitemap{Server: string(d.Bytes(maxText)), Nested: flags&isNested != 0}
	}
	if flags&wasVisited != 0 {
		if s.History.UnmarshalBinary(d.Take(revisit.Size)) != nil {
			d.Bad = true
		}
		s.Hash = d.Uint64()
		s.Text.Words, s.Text.Near = d.Uvarint(), d.Uvarint()
		s.Barred, s.Failures = d.Uvarint(), d.Length(math.MaxInt32)
		s.Due, s.Interval, s.Fresh = d.Varint(), d.Varint(), d.Varint()
		s.Validators = fetch.Validators{ETag: string(d.Bytes(maxText)), LastModified: string(d.Bytes(maxText))}
	}
	s.LeftOut, s.Relink = flags&isLeftOut != 0, flags&hasRelink != 0
	s.Postponed, it.Strange = flags&isPostponed != 0, flags&isStrange != 0
	if d.Bad || len(d.B) > 0 {
		return Item{}, State{}, ErrRecord
	}
	return it, s, nil
}

// A Change is how much a page differs from its previous version.
type Change int

// The kinds of changes.
const (
	NoChange     Change = iota
	SlightChange        // other bytes, but nearly the same words
	RealChange
)

// slight is the share of the words of a page up to which a change is slight: a new banner or teaser
// on a page of usual length, not a new sentence in a short one.
const slight = 0.02

// Compare records a response with content, or one that says that the content is unchanged. It
// returns how that differs from the previous visit. If texts are compared, a page in which only a
// date, a counter or a few words have changed counts as hardly changed. The caller adds the visit
// to the History.
func (s *State) Compare(resp *fetch.Response, texts bool) (change Change) {
	first := s.History.Last().IsZero()
	if !resp.NotModified() {
		if hash := contentHash(resp); hash != s.Hash {
			s.Hash, change = hash, RealChange
		}
		s.Validators = validators(resp)
	}
	if texts && change == RealChange && resp.Location == "" && mediaType(resp) == "text/html" {
		text := simhash.Of(textOf(resp))
		if s.Text != (simhash.Print{}) && s.Text.Changed(text) <= slight {
			change = SlightChange
		}
		s.Text = text
	}
	s.Failures = 0
	if first {
		return RealChange
	}
	return change
}

// validators returns the validators for the next request. If the connection failed there was more
// to get, and "not modified" would hide the rest for as long as the page is unchanged.
func validators(resp *fetch.Response) fetch.Validators {
	switch resp.RawCut {
	case fetch.CutTime, fetch.CutSlow, fetch.CutDisconnect:
		return fetch.Validators{}
	}
	return resp.Validators()
}

// textOf returns the text of a page.
func textOf(resp *fetch.Response) (text []byte) {
	collect := webpage.Options{Text: func(piece []byte) { text = append(text, piece...) }}
	for _, err := range webpage.Scan(resp.Body, resp.URL, resp.Header.Get("Content-Type"), collect) {
		if err != nil {
			break // too many links: the text so far must suffice
		}
	}
	return text
}

// contentHash is the hash of the page, or of the target of a redirect, whose body says nothing.
func contentHash(resp *fetch.Response) uint64 {
	if resp.Location != "" {
		return HashOfRedirect(resp.Location)
	}
	return sum(resp.Body, ofBody)
}

// HashOfRedirect returns the Hash of a page that redirects to a URL.
func HashOfRedirect(to string) uint64 {
	if canonical, err := Plain(to); err == nil {
		to = canonical
	}
	return sum([]byte(to), ofLocation)
}

// Prefixes of hashed data, so that neither an empty page nor one that consists of an address has
// the hash of something else.
const (
	ofBody     = 1
	ofLocation = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is two CRC-32 by different polynomials. They miss one change in 2^64 by chance, and a site
// gains nothing by provoking that. A SHA-256 would take a tenth of all the work for a page, and
// these take an eighth of that.
func sum(b []byte, begin uint32) uint64 {
	return uint64(crc32.Update(begin, crc32.IEEETable, b))<<32 | uint64(crc32.Update(begin, castagnoli, b))
}
