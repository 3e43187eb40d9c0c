package archive

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// ours matches the names that newName makes.
var ours = regexp.MustCompile(`-\d{17}-\d{5,}-[0-9a-f]{8}\.warc(\.gz|\.zst)?$`)

// recover brings the index up to date with the files of a directory that no process writes to.
// Files of dead writers are cut back to their last whole capture, if need be, and finished.
func (a *Archive) recover(d osDir) error {
	names, err := d.list()
	if err != nil {
		return fmt.Errorf("archive: open: list files: %w", err)
	}
	for _, name := range names {
		if !isWARC(name) || isSuperseded(d, name) {
			continue
		}
		if err := a.recoverFile(d, name); err != nil {
			return fmt.Errorf("archive: open: %w", err)
		}
	}
	if err := a.recoverImports(d); err != nil {
		return fmt.Errorf("archive: open: %w", err)
	}
	return a.index.commit()
}

// isSuperseded tells whether a file that was being written lies beside itself as it was finished,
// which a backup can bring about. The finished one is final, and the other must not take its place.
func isSuperseded(d osDir, onDisk string) bool {
	name, open := strings.CutSuffix(onDisk, unfinished)
	if !open {
		return false
	}
	_, err := os.Lstat(d.path(name))
	return err == nil
}

// recoverFile indexes what is new in one file. A file that ends in ".open" is one that a process
// has died over, since no other writes here now. Only names of our own making are trusted to follow
// our rules: other crawlers use the same ending, and their files are not ours to cut.
func (a *Archive) recoverFile(d osDir, onDisk string) error {
	name := strings.TrimSuffix(onDisk, unfinished)
	f, err := os.Open(d.path(onDisk))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	report, err := a.update(f, name, info.Size())
	a.found.count(&report)
	if err != nil || name == onDisk || !ours.MatchString(name) {
		return err
	}
	return finishDead(d, name, report, info.Size())
}

// finishDead ends the file of a dead writer at its last whole capture, and gives it its name.
func finishDead(d osDir, name string, r tail, size int64) error {
	onDisk := d.path(name + unfinished)
	switch {
	case r.whole == 0 && r.torn && (r.begun || size < maxPreface):
		// Its writer died before the first capture was whole.
		return errors.Join(os.Remove(onDisk), d.sync())
	case r.whole == 0:
		return nil // nothing in it can be read: it is left for somebody to look at
	case r.torn && r.whole < size:
		if err := os.Truncate(onDisk, r.whole); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(onDisk, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close(), d.rename(name+unfinished, name)); err != nil {
		return err
	}
	return d.sync()
}

// maxPreface is more than a warcinfo record takes.
const maxPreface = 64 << 10

// tail is what was found by indexing a file from some offset on.
type tail struct {
	versions int
	whole    int64 // where the last version ends, or where indexing began
	damage   int   // places
	begun    bool  // there is a record, if only the warcinfo
	torn     bool  // behind whole there is nothing but what a crash may have left
	broken   int64 // where the damage begins behind which nothing was found; negative: nowhere
	unnamed  int   // versions that no address leads to, as they share a member with others
}

// maxTail is the number of bytes at the end of a file that are read whenever an archive is opened,
// in the hope that they can be understood by then.
const maxTail = 16 << 20

// indexFile adds the versions between two offsets of a file to the index.
func (a *Archive) indexFile(f *os.File, name string, from, to int64) (t tail, err error) {
	t = tail{whole: from, torn: true, broken: -1}
	if from == to {
		return t, nil
	}
	r, err := a.reader(name)
	if err != nil {
		return t, err
	}
	defer r.close()
	r.readAt(f, name, from, to-from)
	for rec, err := range r.warc.Records() {
		if err == nil {
			t.begun = true
			// Whatever follows damage shows that it was not the end.
			t.torn = t.torn && t.damage == 0
			t.broken = -1
			err = a.indexRecord(rec, name, &t)
		}
		var damage *warc.DamageError
		if errors.As(err, &damage) {
			if t.damage++; t.broken < 0 {
				t.broken = damage.Offset
			}
		} else if err != nil {
			return t, err
		}
		if a.index.full() {
			if err := a.commit(); err != nil {
				return t, err
			}
		}
	}
	// In a file of ours all behind the last whole capture will be cut off, and is not indexed. One of
	// others may still be written: what cannot be read at its end may be whole the next time.
	end := to
	if t.torn && ours.MatchString(name) {
		end = t.whole
	} else if t.broken >= 0 && to-t.broken <= maxTail {
		end = t.broken
	}
	a.index.add(name, "", nil, end)
	return t, nil
}

// indexRecord adds one record, if it is a version of something.
func (a *Archive) indexRecord(rec *warc.Record, name string, t *tail) error {
	e, url, ok, err := entryOf(rec, nil)
	if err != nil || !ok {
		return err
	}
	if err := rec.Close(); err != nil {
		return err
	}
	if rec.Length == 0 || rec.Offset > maxOffset {
		t.unnamed++
		return nil
	}
	e.length = rec.Length
	// Strings out of the header would keep all of it in memory as long as the entry waits.
	key, long := urlKey(strings.Clone(url))
	e.url, e.media = long, intern([]byte(e.media))
	t.versions++
	t.whole = rec.Offset + rec.Length
	a.index.add(name, key, &e, t.whole)
	return nil
}

// entryOf returns what the index keeps of a record. Requests, metadata and conversions are no
// versions of their URL, and neither is what has no URL or no date. The body is written to payload
// if that is not nil.
func entryOf(rec *warc.Record, payload io.Writer) (e entry, url string, ok bool, err error) {
	kind, fields := rec.Type(), rec.Fields()
	date, dated := fields.Date()
	url = fields.URI("WARC-Target-URI")
	if kind != "response" && kind != "revisit" && kind != "resource" || !dated || url == "" ||
		len(url) > maxURL || strings.IndexByte(url, 0) >= 0 || strings.IndexByte(url, 0xff) >= 0 {
		return e, "", false, nil
	}
	e = entry{time: microseconds(date), offset: rec.Offset, digest: parseDigest(
		fields.Get("WARC-Payload-Digest")), truncated: !holdsWhole(fields)}
	contentType := fields.Get("Content-Type")
	var body io.Reader = rec
	if isHTTP(contentType) {
		h, err := rec.HTTP()
		if err != nil {
			return e, "", false, err
		}
		e.status, e.media, body = h.Status(), mediaType(h.Get("Content-Type")), h.Body
	} else if e.media = mediaType(contentType); kind != "revisit" {
		e.status = 200 // a file, or an answer of a protocol without codes
	}
	e.kind = kindOf(e.status, kind == "revisit")
	if e.kind == Unchanged {
		e.digest = e.digest.repeated()
	}
	if e.digest != "" || e.kind != Changed {
		if payload != nil {
			_, err = io.Copy(payload, body)
		}
		return e, url, true, err
	}
	// Without a digest no later version could be found to be the same.
	sum := sha1.New()
	if payload != nil {
		body = io.TeeReader(body, payload)
	}
	_, err = io.Copy(sum, body)
	e.digest = sha1Digest((*[sha1.Size]byte)(sum.Sum(nil)))
	return e, url, true, err
}

// holdsWhole tells whether a record holds all that its digest is of: it was not cut off, and does
// not go on in others (WARC 1.1, section 7).
func holdsWhole(fields warc.Fields) bool {
	return fields.Get("WARC-Truncated") == "" && fields.Get("WARC-Segment-Number") == ""
}

// isHTTP tells by its Content-Type whether the block of a record is an HTTP message.
func isHTTP(contentType string) bool {
	return strings.HasPrefix(strings.ToLower(contentType), "application/http")
}

// noBody is the digest of nothing.
var noBody = sha1.Sum(nil)

// repeated returns the digest of an unchanged version as the index keeps it. That of nothing is
// left out: many writers mean the 304 itself by it, and not what that stands for.
func (d Digest) repeated() Digest {
	if d.is(&noBody) {
		return ""
	}
	return d
}

// kindOf tells what a visit found.
func kindOf(status int, revisit bool) Kind {
	switch {
	case revisit || status == 304:
		return Unchanged
	case status >= 400 || status < 100:
		return Failed
	}
	return Changed
}

// maxMedia bounds a media type; real ones have half of it.
const maxMedia = 127

// mediaType returns a Content-Type in lower case and without parameters, or "" for what is none.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	if len(media) > maxMedia || strings.ContainsFunc(media, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '"' || r == '\\'
	}) {
		return ""
	}
	return media
}
