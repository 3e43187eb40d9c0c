package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
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

// idSeed is that of the hashes of IDs and places of records: nobody can make two that are equal.
var idSeed = maphash.MakeSeed()

func placeOf(file uint32, offset int64) uint64 {
	return maphash.Comparable(idSeed, address{file: file, offset: offset})
}

// fileScan reads one file. It is not safe for concurrent use.
type fileScan struct {
	*erasure
	first  bool // only what goes is noted, and nothing moves yet
	name   string
	file   *source
	number uint32
	last   piece
	holes  []hole
}

// scan decides for each record of a file whether it stays, and moves those that have to.
func (e *erasure) scan(ctx context.Context, name string, first bool) error {
	a := e.archive
	f, err := e.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	s := &fileScan{erasure: e, first: first, name: name, file: f}
	s.number, _ = a.index.file(name)
	err = a.walk(f, name, 0, f.size, func(rec *warc.Record) error {
		if err := a.stopped(ctx); err != nil {
			return err
		}
		return s.record(rec)
	}, func(damage *warc.DamageError) error {
		if !first {
			e.report.add(Fault{File: name, Offset: damage.Offset, Err: damage})
		}
		return s.flush()
	})
	if err == nil {
		err = s.flush()
	}
	if err == nil && len(s.holes) > 0 {
		err = s.rewritten(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// rewritten adds the holes of a file to the plan.
func (s *fileScan) rewritten(ctx context.Context) error {
	dict, err := s.archive.dict(s.name)
	if err == nil && len(dict) > 0 {
		err = errDict
	}
	if err != nil {
		return err
	}
	fill, err := s.filler(s.file, s.name, s.file.size)
	for _, h := range s.holes {
		if err == nil && h.Length < 1<<10 { // others have room in any case
			err = fill.hole(io.Discard, s.file, h)
		}
	}
	if err != nil {
		return err
	}
	sum, err := s.archive.keptSum(ctx, s.name, s.file.size, s.holes)
	s.Holes[s.name], s.Sums[s.name] = s.holes, sum
	s.report.Files++
	s.kept = append(s.kept, warc.Field{Name: "rest", Value: fmt.Sprint(sum, " ", s.file.size, " ", s.name)})
	return err
}

// Files that cannot be erased from as they are.
var (
	errDict   = errors.New("its dictionary may have what is to be erased: compress the file anew")
	errMember = errors.New("several records share one compressed member: compress the file anew")
	errAway   = errors.New("has selected captures, and is missing or imported: move it into the directory of " +
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
	if p.kind == "metadata" && rec.Get(erasedField) != "" && p.key == "" {
		return s.flush() // of an erasure before this one
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
	if !version {
		p.about = append(slices.Clip(p.with), fields.URI("WARC-Refers-To"), fields.URI("WARC-Segment-Origin-ID"))
	}
	if of.url != "" {
		p.key, _ = urlkey.Of(strings.Clone(of.url))
	}
	return p, rec.Close()
}

// decide returns what happens to a record by itself.
func (s *fileScan) decide(p *piece) (action int, err error) {
	for _, id := range p.about {
		if id != "" && s.gone[maphash.String(idSeed, id)] {
			return goes, nil
		}
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
	if !repeats || s.first {
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
	p.at = cmp.Or(s.asked[placeOf(p.entry.file, p.entry.offset)], p.key)
	p.stored, p.found, err = a.index.value(p.at, &p.entry)
	if err == nil && p.found && p.stored.kind == Unchanged && p.stored.content.length == 0 {
		err = a.resolve(p.at, &p.stored, p.ref)
	}
	return err
}

// loses reports whether a version that stays refers to what goes, or has its body there. It is wrong only for
// one that refers to nothing by itself: a version goes by way of which the body may have been found.
func (s *fileScan) loses(p *piece) (bool, error) {
	m, ref, content := s.matcher, p.ref, p.stored.content
	if p.found && content.length == 0 {
		return false, nil // its body was never here, or is lost
	}
	origin := p.key
	if ref.url != "" {
		origin, _ = urlkey.Of(ref.url)
	}
	d := cmp.Or(p.stored.digest, p.entry.digest)
	sameBody := m.digest == "" || d == "" || m.digest == d
	// A date without fractions may mean any time in that second.
	inTime := !ref.dated || m.from < ref.time+1e6 && ref.time < m.to
	if (ref.url != "" || ref.dated) && m.covers(origin) && inTime && sameBody {
		return true, nil
	}
	if !p.found || s.gone[placeOf(content.file, content.offset)] {
		return p.found, nil
	}
	for _, key := range []string{p.at, origin} {
		named, found, _, err := s.archive.index.floor(key, ref.time)
		if err != nil || ref.dated && found && named.address() == content {
			return false, err
		}
	}
	return (m.covers(p.key) || m.covers(origin)) && sameBody && m.from <= p.stored.time, nil
}

// act makes a hole for a record that does not stay.
func (s *fileScan) act(p *piece) error {
	switch {
	case p.action == stays:
		return nil
	case isImport(s.name):
		return errImport
	case p.entry.length == 0:
		return errMember
	case s.first:
		s.gone[maphash.String(idSeed, p.id)] = true
		s.gone[placeOf(s.number, p.entry.offset)] = true
		return nil
	}
	s.holes = append(s.holes, hole{p.entry.offset, p.entry.length})
	if p.action == moves {
		return s.moves.move(s.name, p)
	}
	s.report.Records++
	s.bytes += p.entry.length
	if p.version {
		s.report.Erased++
	}
	return nil
}
