package replay

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
)

const (
	// maxCompared is how much of each version is compared, in bytes.
	maxCompared = 2 << 20

	// perCompared is how many times that a comparison takes in memory: both versions as archived,
	// in UTF-8 and in lines, and the page.
	perCompared = 20

	// around is how many unchanged lines are shown before and after a change.
	around = 3

	// maxRows is how many lines of a comparison are shown.
	maxRows = 5000

	// maxRowText is how much of one line is shown, in bytes, and maxShown how much of all. The page
	// may take five times that, since it escapes them.
	maxRowText, maxShown = 2000, 1 << 20
)

// compared is the data of a comparison page.
type compared struct {
	URL            string
	A, B           archive.Version
	ViewA, ViewB   string
	Versions       string
	Swap           string
	Facts          []fact
	Text           bool   // compares the visible text, not the source
	Other          string // address of the other kind of comparison
	Binary         bool
	Equal          bool
	Notes          []string // why not everything was compared or shown
	Added, Removed int
	Rows           []diffRow
}

// fact is a property of both versions.
type fact struct {
	Name, A, B string
	Differs    bool
}

// diffRow is a line of a comparison, or a gap of unchanged lines that are not shown.
type diffRow struct {
	Class              string // same, added, removed or gap
	A, B               int    // line numbers from 1; 0 means none
	Before, Mid, After string // Mid differs from the other line, if there is one
}

// compare shows the differences between two versions of a page.
func (v *Handler) compare(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	u, err := parseURL(q.Get("url"))
	a, okA := parseMoment(q.Get("a"))
	b, okB := parseMoment(q.Get("b"))
	if err != nil || !okA || !okB {
		v.fail(w, http.StatusBadRequest, "Invalid comparison", "A URL and two times are needed.")
		return
	}
	u = v.stored(u)
	d := compared{URL: u.String(), Versions: versionsAddress(u.String()),
		Text: q.Get("mode") == "text"}
	giveBack, ok := v.take(w, r, v.memory, perCompared*maxCompared)
	if !ok {
		return
	}
	defer giveBack()
	var sides [2]side
	for i, p := range []place{{a, u}, {b, u}} {
		version, err := v.archive.At(p.url.String(), p.moment)
		if err == nil {
			sides[i], err = sideOf(v.archive, version, v.maxBody)
		}
		if err != nil {
			v.missing(w, p, err, 0)
			return
		}
	}
	d.A, d.B = sides[0].version, sides[1].version
	d.ViewA, d.ViewB = at(viewPath, d.A.Time, d.URL), at(viewPath, d.B.Time, d.URL)
	d.Swap, d.Other = diffAddress(d.URL, b, a), diffAddress(d.URL, a, b)
	if d.Text {
		d.Swap += "&mode=text"
	} else {
		d.Other += "&" + url.Values{"mode": {"text"}}.Encode()
	}
	d.Facts = facts(&sides[0], &sides[1])
	d.compare(v, &sides[0], &sides[1])
	v.writePage(w, http.StatusOK, "diff", frameOf{Title: "Changes of " + d.URL, Query: d.URL,
		Page: d})
}

// isTextual reports whether a body is compared line by line. SVG is both an image and text.
func isTextual(media string) bool {
	return strings.HasPrefix(media, "text/") || isShown(media) &&
		!strings.HasPrefix(media, "image/") && !strings.HasPrefix(media, "audio/") &&
		!strings.HasPrefix(media, "video/") || media == "image/svg+xml"
}

// facts compares the properties of two versions. The same body may have a different status or type,
// which changes its meaning.
func facts(a, b *side) (list []fact) {
	add := func(name, a, b string) { list = append(list, fact{name, a, b, a != b}) }
	add("Status", fmt.Sprint(a.version.Status), fmt.Sprint(b.version.Status))
	add("Type", a.kind, b.kind)
	add("Digest", a.version.Digest(), b.version.Digest())
	return list
}

// compare fills in the lines.
func (d *compared) compare(v *Handler, a, b *side) {
	for _, s := range []*side{a, b} {
		if s.version.Truncated {
			d.Notes = append(d.Notes, "The version of "+when(s.version.Time)+
				" is truncated: its end was not archived.")
		}
	}
	if a.binary || b.binary {
		d.Binary = true
		sumA, errA := a.sum(v.archive, v.maxBody)
		sumB, errB := b.sum(v.archive, v.maxBody)
		d.note(a, errA)
		d.note(b, errB)
		d.Equal = errA == nil && errB == nil && bytes.Equal(sumA, sumB)
		return
	}
	from, cutA := a.lines(d.Text)
	to, cutB := b.lines(d.Text)
	d.note(a, cutA)
	d.note(b, cutB)
	edits := diff(from, to)
	for _, e := range edits {
		switch e.kind {
		case Added:
			d.Added++
		case Removed:
			d.Removed++
		}
	}
	if d.Added+d.Removed > 0 {
		d.rows(edits, from, to)
	} else if d.Equal = true; !d.Text && a.cut == nil && b.cut == nil && !sameBytes(v, a, b) {
		d.Notes = append(d.Notes, "The bytes differ, but only in line breaks or in what is not text.")
	}
}

// sameBytes reports whether two versions have the same bytes, unless they cannot be read.
func sameBytes(v *Handler, a, b *side) bool {
	sumA, errA := a.sum(v.archive, v.maxBody)
	sumB, errB := b.sum(v.archive, v.maxBody)
	return errA != nil || errB != nil || bytes.Equal(sumA, sumB)
}

// note says why a version was not compared to its end.
func (d *compared) note(s *side, cut error) {
	why := "cannot be read to its end: " + fmt.Sprint(cut)
	if errors.Is(cut, warc.ErrTooLarge) {
		why = "is too long"
	}
	if cut != nil {
		d.Notes = append(d.Notes, "The version of "+when(s.version.Time)+" "+why+
			". Only its beginning is compared.")
	}
}

// rows adds the changed lines and some context to the table.
func (d *compared) rows(edits []edit, from, to []string) {
	near := nearChanges(edits)
	shown := 0
	for i := 0; i < len(edits) && len(d.Rows) < maxRows && shown <= maxShown; {
		first := len(d.Rows)
		switch e := edits[i]; {
		case !near[i]:
			d.Rows = append(d.Rows, diffRow{Class: "gap"})
			for i < len(edits) && !near[i] {
				i++
			}
		case e.kind == Kept:
			d.Rows = append(d.Rows, diffRow{Class: "same", A: e.a + 1, B: e.b + 1,
				Before: short(from[e.a])})
			i++
		default:
			end := i
			for end < len(edits) && edits[end].kind != Kept {
				end++
			}
			d.changed(edits[i:end], from, to)
			i = end
		}
		for j := first; j < len(d.Rows); j++ {
			if shown += len(d.Rows[j].Before) + len(d.Rows[j].Mid) + len(d.Rows[j].After); shown > maxShown {
				d.Rows = d.Rows[:j]
			}
		}
	}
	if len(d.Rows) >= maxRows || shown > maxShown {
		d.Rows = d.Rows[:min(len(d.Rows), maxRows)]
		d.Notes = append(d.Notes, "Only the first changes are shown.")
	}
}

// nearChanges reports for each edit whether it is shown.
func nearChanges(edits []edit) []bool {
	near := make([]bool, len(edits))
	for i, e := range edits {
		if e.kind == Kept {
			continue
		}
		for j := max(0, i-around); j <= min(len(edits)-1, i+around); j++ {
			near[j] = true
		}
	}
	return near
}

// changed adds removed lines and then added ones. The n-th of both are considered the same line,
// and the part that differs is marked.
func (d *compared) changed(edits []edit, from, to []string) {
	n := 0
	for n < len(edits) && edits[n].kind == Removed {
		n++
	}
	olds, news := edits[:n], edits[n:]
	for i, e := range olds {
		line, other := short(from[e.a]), ""
		if i < len(news) {
			other = short(to[news[i].b])
		}
		before, mid, after := differing(line, other)
		d.Rows = append(d.Rows, diffRow{"removed", e.a + 1, 0, before, mid, after})
	}
	for i, e := range news {
		line, other := short(to[e.b]), ""
		if i < len(olds) {
			other = short(from[olds[i].a])
		}
		before, mid, after := differing(line, other)
		d.Rows = append(d.Rows, diffRow{"added", 0, e.b + 1, before, mid, after})
	}
}

// differing splits a line into the prefix that it shares with another line, the part that differs,
// and the shared suffix. If they share little, the lines are unrelated, and nothing is marked.
func differing(line, other string) (before, mid, after string) {
	start := 0
	for start < min(len(line), len(other)) && line[start] == other[start] {
		start++
	}
	for start > 0 && start < len(line) && !utf8.RuneStart(line[start]) {
		start--
	}
	end := 0
	for end < min(len(line), len(other))-start &&
		line[len(line)-1-end] == other[len(other)-1-end] {
		end++
	}
	for end > 0 && !utf8.RuneStart(line[len(line)-end]) {
		end--
	}
	if 4*(start+end) < len(line) {
		return line, "", ""
	}
	// Marked words are easier to read than parts of words.
	for start > 0 && start < len(line) && isNameByte(line[start-1]) && isNameByte(line[start]) {
		start--
	}
	for end > 0 && end < len(line) && isNameByte(line[len(line)-end]) &&
		isNameByte(line[len(line)-end-1]) {
		end--
	}
	return line[:start], line[start : len(line)-end], line[len(line)-end:]
}

// short returns a line as it is shown.
func short(line string) string {
	line, more := strings.CutSuffix(line, goesOn)
	if line = shortened(line, maxRowText); more {
		line += " …"
	}
	return line
}

// shortened truncates a text that is too long to be shown.
func shortened(text string, size int) string {
	if len(text) <= size {
		return text
	}
	n := size
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + " …"
}
