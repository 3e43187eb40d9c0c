package replay

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// ErrNotText is wrapped by the error of [Changes] for versions that are not text.
var ErrNotText = errors.New("replay: not text")

// Kind is what became of a [Piece].
type Kind uint8

// The kinds.
const (
	Kept Kind = iota
	Removed
	Added
)

// Piece is a line of text that two versions share, or that only one of them has.
type Piece struct {
	Kind Kind
	Text string // in UTF-8, without the line break
}

// Changes compares two versions of a page, and returns the lines of both in their order, removed
// ones before those added in their place. The lines of an HTML page are those that a reader sees
// without scripts: blocks without markup, lines of preformatted text, and the texts of images. Those
// of other text are the lines of its source, in parts if they are long. The charset is that of each
// version. Versions without a Removed or Added piece may still differ in what is not shown: compare
// [archive.Version.Digest].
//
// The version of a time may be an error or a redirect, whose text is compared like that of a page:
// see Kind and Status of [archive.Version].
//
// An error comes once, with the zero Piece, and last. It wraps [ErrNotText] for images and other
// binary content, [warc.ErrTooLarge], after the pieces, if a version has more than 2 MiB or 50,000
// lines, of which only these were compared, [io.ErrUnexpectedEOF], after the pieces, if the end of a
// version was not archived, so that it seems removed or added, and another error, after the pieces, if
// the rest of a version cannot be read. Up to some 40 MiB of memory are used for both.
func Changes(a *archive.Archive, from, to archive.Version) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		var lines [2][]string
		var cut error
		for i, version := range []archive.Version{from, to} {
			s, err := sideOf(a, version, maxBody)
			if err == nil && s.binary {
				err = fmt.Errorf("%w: %.200s is %.100s", ErrNotText, version.URL, s.kind)
			}
			if err != nil {
				yield(Piece{}, err)
				return
			}
			lines[i], err = s.lines(true)
			if version.Truncated && err == nil {
				err = fmt.Errorf("truncated version: %w", io.ErrUnexpectedEOF)
			}
			if err != nil && (cut == nil || errors.Is(cut, warc.ErrTooLarge)) { // damage is worse
				cut = err
			}
		}
		for _, e := range diff(lines[0], lines[1]) {
			piece := Piece{e.kind, ""}
			if e.kind == Added {
				piece.Text = lines[1][e.b]
			} else {
				piece.Text = lines[0][e.a]
			}
			piece.Text = strings.TrimSuffix(piece.Text, goesOn)
			if !yield(piece, nil) {
				return
			}
		}
		if cut != nil {
			yield(Piece{}, fmt.Errorf("replay: compare %.200s: only the beginning: %w", to.URL, cut))
		}
	}
}

// side is one of two versions.
type side struct {
	version archive.Version
	kind    string
	page    bool
	binary  bool
	body    []byte // in UTF-8; nil if it is binary
	cut     error  // why the body is not whole
}

// sideOf reads a version to compare it.
func sideOf(a *archive.Archive, version archive.Version, maxBody int64) (s side, err error) {
	s.version = version
	c, err := openCapture(a, version, maxBody)
	if err != nil {
		return s, err
	}
	defer c.close()
	s.kind, s.page, s.binary = c.kind, c.isHTML(), !isTextual(c.media())
	if s.binary {
		return s, nil
	}
	s.body, s.cut = c.read(maxCompared)
	converted, whole := toUTF8(s.body[:min(len(s.body), maxCompared)], c.kind, maxCompared)
	s.body = converted
	if !whole {
		s.cut = cmp.Or(s.cut, warc.ErrTooLarge)
	}
	return s, nil
}

// lines returns the lines to compare, and why these are not all.
func (s *side) lines(text bool) (lines []string, cut error) {
	if text && s.page {
		lines = visibleText(asHTML(s.body, s.kind))
	} else {
		lines = sourceLines(string(s.body))
	}
	if len(lines) > maxLines {
		return lines[:maxLines], cmp.Or(s.cut, warc.ErrTooLarge)
	}
	return lines, s.cut
}

// sum returns a digest of the whole body. That in the archive may be only what an imported file
// claims.
func (s *side) sum(a *archive.Archive, maxBody int64) ([]byte, error) {
	c, err := openCapture(a, s.version, maxBody)
	if err != nil {
		return nil, err
	}
	defer c.close()
	h := sha256.New()
	_, err = io.Copy(h, c.body)
	return h.Sum(nil), err
}
