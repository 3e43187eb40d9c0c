package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// erasedField is the field of the records that take the place of others, and of tombstones.
const erasedField = "Spinneret-Erased"

// hole is a part of a file whose records have to go, or have gone.
type hole struct {
	offset, length int64
	warcinfo       string // WARC-Warcinfo-ID of the records
}

// holes are those of a file.
type holes struct {
	size   int64
	erased []hole // those to be made
	all    []hole // and those that were made before
}

// What happens to a record.
const (
	stays = iota
	goes
	moves
)

// piece is a record, as far as it matters here.
type piece struct {
	links
	kind, key string
	about     []string // IDs of records that it belongs to
	warcinfo  string
	entry     entry
	version   bool
	dated     bool
	ref       reference
	end       int64
	action    int
	paired    bool // a request and a response have found each other
}

// fileScan reads one file. It is not safe for concurrent use.
type fileScan struct {
	*erasure
	name   string
	file   io.ReaderAt
	number uint32
	last   piece
	found  holes
}

// scan decides for each record of a file whether it stays, moves those that have to, and collects the
// keys of all that do not stay. It decides only once: the index says something else later.
func (e *erasure) scan(onDisk string) (holes, error) {
	a, name := e.archive, strings.TrimSuffix(onDisk, unfinished)
	f, err := a.openFile(name)
	if err != nil {
		return holes{}, err
	}
	defer f.Close()
	size := min(f.size, e.Files[name]) // what was appended since then stays
	s := &fileScan{erasure: e, name: name, file: f, found: holes{size: size}}
	s.number, _ = a.index.file(name)
	err = a.walk(f, name, 0, size, s.record, func(damage *warc.DamageError) error {
		s.last = piece{}
		e.report.add(Fault{File: name, Offset: damage.Offset, Err: damage})
		return nil
	})
	if err != nil {
		return s.found, err
	}
	if dict, err := a.dict(name); err != nil || len(dict) > 0 && len(s.found.erased) > 0 {
		return s.found, errors.Join(err, errDict)
	}
	return s.found, nil
}

// Files that cannot be erased from as they are.
var (
	errDict   = errors.New("its dictionary may have what is to be erased: compress the file anew")
	errMember = errors.New("several records share one compressed member: compress the file anew")
)

// record decides for one record, and for the request before it.
func (s *fileScan) record(rec *warc.Record) error {
	p, err := readPiece(rec)
	if err != nil {
		return err
	}
	p.entry.file, p.entry.length = s.number, rec.Length
	p.end = rec.Offset + rec.Length
	if p.kind == "metadata" && rec.Get(erasedField) != "" {
		if rec.Get("Content-Type") == "" {
			s.found.all = append(s.found.all, hole{rec.Offset, rec.Length, ""})
		}
		s.last = piece{}
		return nil
	}
	if p.action, err = s.decide(&p); err != nil {
		return err
	}
	before := s.last
	if before.end != rec.Offset || before.key != p.key || before.paired {
		before = piece{}
	}
	switch {
	case !before.match(p.links): // of two visits
	case p.kind == "request" && before.version: // a response before its request
		p.paired = true
		p.action = max(p.action, before.action)
	case p.version && before.kind == "request":
		p.paired = true
		if before.action < p.action {
			before.action = p.action
			if err := s.act(&before); err != nil {
				return err
			}
		}
	}
	s.last = p
	if p.action == stays {
		return nil
	}
	return s.act(&p)
}

// readPiece reads a record to its end.
func readPiece(rec *warc.Record) (p piece, err error) {
	fields := rec.Fields()
	e, of, version, err := entryOf(rec, nil)
	if err != nil {
		return p, err
	}
	if !version {
		of.url = fields.URI("WARC-Target-URI")
		e = entry{offset: rec.Offset, digest: parseDigest(fields.Get("WARC-Payload-Digest"))}
		date, _ := fields.Date()
		e.time = microseconds(date)
	}
	_, dated := fields.Date()
	p = piece{kind: rec.Type(), entry: e, version: version, dated: dated, ref: refersTo(fields),
		links: linksOf(fields), warcinfo: strings.Clone(fields.Get("WARC-Warcinfo-ID"))}
	for _, name := range []string{"WARC-Refers-To", "WARC-Concurrent-To"} {
		if id := fields.URI(name); id != "" && !version {
			p.about = append(p.about, id)
		}
	}
	if of.url != "" {
		p.key, _ = urlkey.Of(strings.Clone(of.url))
	}
	return p, rec.Close()
}

// decide returns what happens to a record by itself.
func (s *fileScan) decide(p *piece) (action int, err error) {
	m := s.matcher
	if p.kind == "warcinfo" || p.key == "" || !p.dated && (m.from > -never || m.to < never) {
		return stays, nil
	}
	if m.matches(p.key, p.entry.time, p.entry.digest) {
		return goes, nil
	}
	for _, id := range p.about {
		if s.erased[id] {
			return goes, nil
		}
	}
	if p.kind != "revisit" || !p.version {
		return stays, nil
	}
	lost, err := s.loses(p)
	if lost && (!s.known || s.copied[copied{p.key, p.entry.time}]) {
		return moves, err
	}
	return stays, err
}

// copied is the key and the time of a version that was moved.
type copied struct {
	key  string
	time int64
}

// readCopied notes what an earlier attempt has moved. The index may say something else by now, and a
// record without a copy must not go.
func (e *erasure) readCopied() error {
	f, err := e.archive.openFile(e.File)
	if err != nil {
		return err
	}
	defer f.Close()
	e.copied = map[copied]bool{}
	return e.archive.walk(f, e.File, 0, f.size, func(rec *warc.Record) error {
		p, err := readPiece(rec)
		if err == nil && p.version {
			e.copied[copied{p.key, p.entry.time}] = true
		}
		return err
	}, func(*warc.DamageError) error { return nil })
}

// loses reports whether a revisit that stays refers to what goes, or did before it was moved.
func (s *fileScan) loses(p *piece) (bool, error) {
	x, m := s.archive.index, s.matcher
	key, stored, found, err := x.answer(p.key, &p.entry)
	if err != nil {
		return false, err
	}
	d := p.entry.digest
	if found {
		d = stored.digest
	}
	origin := p.key
	if p.ref.url != "" {
		origin, _ = urlkey.Of(p.ref.url)
	}
	named := p.ref.url != "" || p.ref.dated
	// A date without fractions may mean any time in that second.
	inTime := !p.ref.dated || m.from < p.ref.time+1e6 && p.ref.time < m.to
	if named && m.covers(origin) && inTime && (m.digest == "" || d == "" || m.digest == d) {
		return true, nil
	}
	if !m.covers(p.key) {
		return false, nil
	}
	// Its content may be found by its digest alone, at another time.
	last, any, err := x.changedBefore(key, &p.entry)
	if err != nil || any && found && last.body() == stored.body() {
		return err == nil && m.matches(p.key, last.time, last.digest), err
	}
	now, any, _, err := x.floor(key, p.entry.time)
	return any && now.time == p.entry.time && x.name(now.file) == s.File, err
}

// act makes a hole for a record that does not stay.
func (s *fileScan) act(p *piece) error {
	if p.entry.length == 0 {
		return errMember
	}
	h := hole{p.entry.offset, p.entry.length, p.warcinfo}
	s.found.erased, s.found.all = append(s.found.erased, h), append(s.found.all, h)
	if h.length < 1<<10 { // others have room in any case
		if err := s.filler(io.Discard, s.file, h); err != nil {
			return err
		}
	}
	if p.action == moves {
		if err := s.erasure.moves.move(s.name, p); err != nil {
			return err
		}
	} else {
		s.report.Records++
		if s.bytes += h.length; s.matcher.digest != "" {
			s.erased[p.id] = true
		}
	}
	if !p.version {
		return nil
	}
	if p.action == goes {
		s.report.Erased++
	}
	if p.entry.digest != "" {
		if err := s.dropped.Add(bodyKey(p.entry.digest)); err != nil {
			return err
		}
	}
	key, _, _, err := s.archive.index.answer(p.key, &p.entry)
	if err != nil {
		return err
	}
	return s.dropped.Add(appendKey(nil, key, &p.entry))
}

// keptSum returns the digest of a file without holes.
func (a *Archive) keptSum(onDisk string, size int64, holes []hole) (string, error) {
	f, err := a.openFile(strings.TrimSuffix(onDisk, unfinished))
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	at := int64(0)
	for _, h := range append(holes[:len(holes):len(holes)], hole{offset: size}) {
		n := h.offset - at
		if got, err := io.Copy(sum, io.NewSectionReader(f, at, n)); err != nil || got < n {
			return "", errors.Join(err, fmt.Errorf("%s: %d of %d bytes", onDisk, at+got, size))
		}
		at = h.offset + h.length
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
