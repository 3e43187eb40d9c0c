package archive

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"math"
	"strings"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// erasedField is the field of the records that take the place of others, and of tombstones.
const erasedField = "Spinneret-Erased"

// What happens to a record.
const (
	stays = iota
	goes
	moves
)

// piece is a record, as far as it matters here.
type piece struct {
	links
	kind, key string   // of its URL
	about     []string // IDs of records that it belongs to
	entry     entry
	version   bool
	dated     bool
	ref       reference
	end       int64
	action    int
	paired    bool // a request and a response have found each other

	// What the index knows of a version that may have its body elsewhere: its key and its entry.
	at     string
	stored entry
	found  bool
}

// idSeed is that of the hashes of IDs of records: nobody can make two that are equal.
var idSeed = maphash.MakeSeed()

// fileScan reads one file. It is not safe for concurrent use.
type fileScan struct {
	*erasure
	ids      bool // only the IDs of what goes are wanted
	name     string
	file     io.ReaderAt
	number   uint32
	warcinfo string
	last     piece
	size     int64
	holes    []hole // those to be made
	all      []hole // and those that were made before
}

// scan decides for each record of a file whether it stays, and moves those that have to.
func (e *erasure) scan(ctx context.Context, name string, ids bool) (*fileScan, error) {
	a := e.archive
	f, err := a.openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &fileScan{erasure: e, ids: ids, name: name, file: f, size: f.size}
	state, _ := a.index.state(name)
	if size, listed := e.Sizes[name]; listed {
		s.size = min(f.size, size)
	} else if f.size < state.end {
		return nil, fmt.Errorf("%s: %w", name, errShorter)
	}
	if s.number, _ = a.index.file(name); isOurs(name) {
		s.warcinfo, err = a.fileID(f, name, s.size)
	}
	if err == nil {
		err = a.walk(f, name, 0, s.size, func(rec *warc.Record) error {
			if err := a.stopped(ctx); err != nil {
				return err
			}
			return s.record(rec)
		}, func(damage *warc.DamageError) error {
			if !ids {
				e.report.add(Fault{File: name, Offset: damage.Offset, Err: damage})
			}
			return s.flush()
		})
	}
	if err == nil {
		err = s.flush()
	}
	if err == nil && len(s.holes) > 0 {
		var dict []byte
		if dict, err = a.dict(name); err == nil && len(dict) > 0 {
			err = errDict
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// fileID returns the ID of a file of ours, or "" if no record has it.
func (a *Archive) fileID(f io.ReaderAt, name string, size int64) (string, error) {
	r, err := a.reader(name)
	if err != nil {
		return "", err
	}
	defer r.close()
	return identity(r, f, name, size)
}

// Files that cannot be erased from as they are.
var (
	errDict     = errors.New("its dictionary may have what is to be erased: compress the file anew")
	errNameless = errors.New("the IDs of captures are needed to know what this belongs to")
	errMember   = errors.New("several records share one compressed member: compress the file anew")
	errAway     = errors.New("has selected captures, and is missing or imported: move it into the directory of " +
		"the archive, or make the archive forget it with Options.Reindex")
	errImport = errors.New("it has what is selected or refers to that, and imported files are never " +
		"changed: move it into the directory of the archive")
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
		err := s.flush() // what it makes a hole is before this one
		if err == nil && isHole(rec) {
			s.all = append(s.all, hole{rec.Offset, rec.Length})
		}
		return err
	}
	if p.action, err = s.decide(&p); err != nil {
		return err
	}
	before := &s.last
	if before.end == rec.Offset && before.key == p.key && !before.paired && before.match(p.links) {
		switch {
		case p.kind == "request" && before.version: // a response before its request
			p.paired, p.action = true, before.action
		case p.version && before.kind == "request":
			p.paired, before.action = true, p.action
		}
	}
	if err := s.flush(); err != nil {
		return err
	}
	if s.last = p; p.kind == "request" {
		return nil // until it is known whether its response follows: it goes with that, and only with that
	}
	return s.act(&s.last)
}

// flush does what was decided for a request, if that is the last record.
func (s *fileScan) flush() error {
	last := s.last
	if s.last = (piece{}); last.kind != "request" {
		return nil
	}
	return s.act(&last)
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
		e = entry{offset: rec.Offset}
		if kind := rec.Type(); kind != "request" && kind != "metadata" { // which are about the body of another one
			e.digest = parseDigest(fields.Get(payloadField))
		}
		date, _ := fields.Date()
		e.time = microseconds(date)
	}
	_, dated := fields.Date()
	p = piece{kind: rec.Type(), entry: e, version: version, dated: dated, ref: refersTo(fields),
		links: linksOf(fields)}
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
	for _, id := range p.about {
		if s.erased[maphash.String(idSeed, id)] {
			return goes, nil
		}
	}
	if len(p.about) > 0 && p.key == "" && s.erased == nil {
		return stays, errNameless
	}
	m := s.matcher
	if p.kind == "warcinfo" || p.key == "" || !p.dated && (m.from > -never || m.to < never) {
		return stays, nil
	}
	d := p.entry.digest
	repeats := p.version && p.entry.kind == Unchanged // also a 304 in a response record
	if repeats {
		if err := s.find(p); err != nil {
			return stays, err
		}
		d = cmp.Or(p.stored.digest, d) // the record may not have that of its body
	}
	if m.matches(p.key, p.entry.time, d) {
		return goes, nil
	}
	if !repeats || s.ids {
		return stays, nil
	}
	lost, err := s.loses(p)
	if lost {
		return moves, err
	}
	return stays, err
}

// find finds what the index knows of a version, and its body.
func (s *fileScan) find(p *piece) (err error) {
	a := s.archive
	p.at, p.stored, p.found, err = a.index.answer(p.key, &p.entry)
	if err == nil && p.found && p.stored.kind == Unchanged && p.stored.content.length == 0 {
		err = a.resolve(p.at, &p.stored, p.ref)
	}
	return err
}

// loses reports whether a version that stays refers to what goes.
func (s *fileScan) loses(p *piece) (bool, error) {
	m := s.matcher
	origin := p.key
	if p.ref.url != "" {
		origin, _ = urlkey.Of(p.ref.url)
	}
	if p.found && p.stored.content.length == 0 {
		return false, nil // its body was never here, or is lost
	}
	d := cmp.Or(p.stored.digest, p.entry.digest)
	// A date without fractions may mean any time in that second.
	inTime := !p.ref.dated || m.from < p.ref.time+1e6 && p.ref.time < m.to
	named := p.ref.url != "" || p.ref.dated
	if named && m.covers(origin) && inTime && (m.digest == "" || d == "" || m.digest == d) {
		return true, nil
	}
	if !p.found {
		return false, nil
	}
	// A reference may have a later date than its original.
	last, found, _, err := s.archive.index.floor(origin, p.ref.time)
	if err != nil {
		return false, err
	}
	if named && found && last.address() == p.stored.content {
		return m.matches(origin, last.time, cmp.Or(last.digest, d)), nil
	}
	if gone, err := s.losesLink(p, origin); gone || err != nil {
		return gone, err
	}
	// Its body was found otherwise: by the digest, as the last one before a 304, or behind another revisit.
	rec, err := s.archive.open(s.archive.location(p.stored.content))
	if errors.Is(err, warc.ErrDamaged) || errors.Is(err, ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return false, nil // it is lost already, which Verify reports
	}
	if err != nil {
		return false, err
	}
	defer rec.release()
	key, _ := urlkey.Of(rec.Fields().URI("WARC-Target-URI"))
	date, _ := rec.Fields().Date()
	return m.matches(key, microseconds(date), d), nil
}

// losesLink reports whether another version goes by way of which the body of this one was found: a new index
// would not find it any more, or find another one.
func (s *fileScan) losesLink(p *piece, origin string) (gone bool, err error) {
	m := s.matcher
	named := entry{time: p.ref.time + 1e6, file: math.MaxUint32, offset: maxOffset}
	for _, from := range []struct {
		key string
		at  entry
	}{{p.at, p.stored}, {p.at, named}, {origin, named}} {
		if gone || err != nil || !m.covers(from.key) {
			continue
		}
		err = s.archive.index.back(from.key, from.at, func(link *entry) bool {
			if link.body() != p.stored.content {
				return true
			}
			gone = m.matches(from.key, link.time, cmp.Or(link.digest, p.stored.digest))
			return false
		})
	}
	return gone, err
}

// act makes a hole for a record that does not stay.
func (s *fileScan) act(p *piece) error {
	switch {
	case p.action == stays:
		return nil
	case isImport(s.name):
		return errImport
	case s.ids:
		if p.action == goes {
			s.erased[maphash.String(idSeed, p.id)] = true
		}
		return nil
	case p.entry.length == 0:
		return errMember
	}
	h := hole{p.entry.offset, p.entry.length}
	s.holes, s.all = append(s.holes, h), append(s.all, h)
	if h.Length < 1<<10 { // others have room in any case
		if err := (&filler{erasure: s.erasure, name: s.name, warcinfo: s.warcinfo}).hole(io.Discard, s.file, h); err != nil {
			return err
		}
	}
	if p.action == moves {
		return s.erasure.moves.move(s.name, p)
	}
	s.report.Records++
	s.bytes += h.Length
	if p.version {
		s.report.Erased++
	}
	return nil
}

// keptSum returns the digest of a file without holes, none of which may overlap.
func (a *Archive) keptSum(ctx context.Context, name string, size int64, holes []hole) (string, error) {
	f, err := a.openFile(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	at := int64(0)
	for _, h := range append(holes[:len(holes):len(holes)], hole{Offset: size}) {
		if err := a.stopped(ctx); err != nil {
			return "", err
		}
		n := h.Offset - at
		if got, err := io.Copy(sum, io.NewSectionReader(f, at, n)); err != nil || got != n {
			return "", errors.Join(err, fmt.Errorf("%s: %d of %d bytes", name, at+got, size))
		}
		at = h.Offset + h.Length
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
