package archive

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// remembered is what a model knows of a version.
type remembered struct {
	url, body string
	time      time.Time
}

// eraseModel is an archive of random captures. Times, URLs and bodies are unique words.
type eraseModel struct {
	files    *vfs.Mem
	opts     Options
	versions []remembered
}

func archiveToErase(t *testing.T, r *rand.Rand) *eraseModel {
	m := &eraseModel{files: vfs.NewMem(), opts: Options{MaxFile: 3000, Level: -1, Compressors: 1,
		Share: r.IntN(2) == 0}}
	m.opts.Compression = []warc.Compression{warc.Gzip, warc.Zstd}[r.IntN(2)]
	if r.IntN(2) == 0 {
		m.opts.Level = 0
	}
	a, err := OpenOn(m.files, m.opts)
	require.NoError(t, err)
	last := map[string]string{}
	for i := range 40 {
		url := fmt.Sprintf("http://host%d.test/path%d", r.IntN(3), r.IntN(3))
		v := remembered{url, strings.Repeat(fmt.Sprintf("body%d ", r.IntN(5)), 200),
			someTime.UTC().Truncate(time.Microsecond).Add(time.Duration(i) * time.Hour)}
		c := Capture{URL: url, Time: v.time, Body: []byte(v.body),
			Request: []byte("GET /asked HTTP/1.1\r\nX: " + url + "\r\n\r\n"),
			Head:    []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")}
		switch r.IntN(6) {
		case 0:
			c.Head, c.Body, v.body = []byte("HTTP/1.1 304 Not Modified\r\nX: y\r\n\r\n"), nil, last[url]
		case 1:
			c.Request = []byte("POST / HTTP/1.1\r\n\r\nform")
		case 2:
			c.Head = []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		case 3:
			c.Request = nil
		}
		loc, err := a.Append(c)
		require.NoError(t, err)
		if r.IntN(6) == 0 {
			_, err = a.AppendMetadata(loc, warc.Field{Name: "note", Value: "about " + url})
			require.NoError(t, err)
		}
		if !bytes.HasPrefix(c.Request, []byte("POST")) { // another answer, not a version of the page
			last[url] = v.body
		}
		m.versions = append(m.versions, v)
		if r.IntN(10) == 0 {
			require.NoError(t, a.Commit())
		}
	}
	require.NoError(t, a.Close())
	return m
}

// selection returns a random selection, and which versions it selects.
func (m *eraseModel) selection(r *rand.Rand) (s Selection, selects func(remembered) bool) {
	some := m.versions[r.IntN(len(m.versions))]
	switch r.IntN(5) {
	case 0:
		s.URL = some.url
	case 1:
		s.Host = "host1.test"
	case 2:
		s.Prefix = "http://host2.test/path"
	case 3:
		for some.body == "" {
			some = m.versions[r.IntN(len(m.versions))]
		}
		s.Digest = sha1Of([]byte(some.body))
	}
	if s == (Selection{}) || r.IntN(3) == 0 {
		s.From, s.To = some.time.Add(-3*time.Hour), some.time.Add(5*time.Hour)
	}
	return s, func(v remembered) bool {
		return (s.URL == "" || v.url == s.URL) &&
			(s.Host == "" || strings.HasPrefix(v.url, "http://host1.test/")) &&
			(s.Prefix == "" || strings.HasPrefix(v.url, s.Prefix)) &&
			(s.Digest == "" || v.body == some.body) &&
			(s.From.IsZero() || !v.time.Before(s.From) && v.time.Before(s.To))
	}
}

// check requires that an archive has all versions but those that are gone, and knows no word that
// only these have. It returns false if nothing is gone.
func (m *eraseModel) check(t *testing.T, a *Archive, gone func(remembered) bool) bool {
	found, methods := map[string]bool{}, map[string]string{}
	for v, err := range a.All() {
		require.NoError(t, err)
		key := v.URL + v.Time.String()
		require.False(t, found[key], "%s is there twice", key)
		found[key], methods[key] = true, v.Method
	}
	erased := len(found) < len(m.versions)
	var words bytes.Buffer
	n := 0
	for _, v := range m.versions {
		here := found[v.url+v.time.String()]
		if erased && gone(v) {
			require.False(t, here, "%s %v is still there", v.url, v.time)
			continue
		}
		n++
		require.True(t, here, "%s %v is lost", v.url, v.time)
		answers, err := a.Answers(v.url, methods[v.url+v.time.String()], "")
		require.NoError(t, err)
		at := answers[slices.IndexFunc(answers, func(one Version) bool { return one.Time.Equal(v.time) })]
		if v.body != "" {
			got, err := a.Body(at)
			require.NoError(t, err, "%s %v %+v", v.url, v.time, at)
			require.Equal(t, v.body, string(got), "%s %v", v.url, v.time)
			resp, err := a.Response(at)
			require.NoError(t, err)
			got, err = io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, v.body, string(got))
			require.NoError(t, resp.Body.Close())
		}
		fmt.Fprintln(&words, v.url, v.body)
	}
	require.Len(t, found, n)
	for rec, err := range a.Records() {
		require.NoError(t, err)
		text, err := io.ReadAll(rec)
		require.NoError(t, err)
		text = fmt.Append(text, rec.Fields())
		for _, v := range m.versions {
			for _, word := range []string{v.url, strings.Fields(v.body + " .")[0] + " "} {
				if erased && !bytes.Contains(words.Bytes(), []byte(word)) && len(word) > 4 {
					require.NotContains(t, string(text), word)
				}
			}
		}
	}
	_, err := a.Verify(t.Context(), func(f Fault) { t.Errorf("fault after erasure: %+v", f) })
	require.NoError(t, err)
	return erased
}

// The power fails at any step of an erasure. Then either nothing has happened, or Open completes it;
// everything else is as it was.
func TestEraseMatchesModel(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 45))
			m := archiveToErase(t, r)
			s, gone := m.selection(r)
			whole := m.files.Clone()
			a, err := OpenOn(whole, m.opts)
			require.NoError(t, err)
			before := whole.Steps()
			report, err := a.Erase(t.Context(), s, "asked for")
			require.NoError(t, err)
			steps := whole.Steps() - before
			erased := m.check(t, a, gone)
			require.Equal(t, erased, report.Erased > 0)
			again, err := a.Erase(t.Context(), s, "asked for again")
			require.NoError(t, err)
			require.Zero(t, again.Records)
			require.NoError(t, a.Close())
			_, err = RepairOn(whole, m.opts) // the index is what the files say
			require.NoError(t, err)
			a, err = OpenOn(whole, m.opts)
			require.NoError(t, err)
			require.Equal(t, erased, m.check(t, a, gone))
			require.NoError(t, a.Close())

			for range 12 {
				files := m.files.Clone()
				a, err := OpenOn(files, m.opts)
				require.NoError(t, err)
				files.FailAt(files.Steps()+1+r.IntN(steps), vfs.ErrPower)
				_, failed := a.Erase(t.Context(), s, "asked for")
				files = files.Crash(r)
				if r.IntN(2) == 0 { // again, while it is completed
					files.FailAt(1+r.IntN(steps), vfs.ErrPower)
					_, _ = OpenOn(files, m.opts)
					files = files.Crash(r)
				}
				a, err = OpenOn(files, m.opts)
				require.NoError(t, err)
				if t.Failed() {
					return
				}
				if done := m.check(t, a, gone); failed == nil {
					require.Equal(t, erased, done)
				}
				names, err := files.List()
				require.NoError(t, err)
				require.NotContains(t, names, eraseName)
				require.NoError(t, a.Close())
			}
		})
	}
}

// Readers see the archive before or after an erasure. Versions that they found before are not found where they were.
func TestReadersBesideAnErasure(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{Share: true})
	text := strings.Repeat("shared text ", 200)
	put := func(url string, hours int) {
		_, err := a.Append(visit{url, someTime.Add(time.Duration(hours) * time.Hour), 200, text}.capture())
		require.NoError(t, err)
	}
	put("http://a.test/gone", 1)
	put("http://b.test/kept", 2)
	put("http://c.test/kept", 3)
	r, err := Open(dir, Options{ReadOnly: true})
	require.NoError(t, err)
	var before []Version
	for v, err := range r.All() {
		require.NoError(t, err)
		before = append(before, v)
	}
	require.Len(t, before, 3)
	_, err = a.Erase(t.Context(), Selection{Host: "a.test"}, "asked for")
	require.NoError(t, err)
	require.NoError(t, r.follower.refresh(r))
	for _, by := range []*Archive{a, r} {
		for _, v := range before {
			_, err := by.Body(v)
			require.ErrorIs(t, err, ErrNotFound)
			_, err = by.Response(v)
			require.ErrorIs(t, err, ErrNotFound)
			if strings.Contains(v.URL, "gone") {
				continue
			}
			v, err = by.At(v.URL, v.Time)
			require.NoError(t, err)
			got, err := by.Body(v)
			resp, failed := by.Response(v)
			require.NoError(t, err, v.URL)
			require.Equal(t, text, string(got))
			require.NoError(t, failed)
			require.NoError(t, resp.Body.Close())
		}
		_, err = by.At("http://a.test/gone", time.Time{})
		require.ErrorIs(t, err, ErrNotFound)
	}
	stored := 0 // the others still share one body
	for rec, err := range r.Records() {
		require.NoError(t, err)
		if rec.Type() == "response" {
			stored++
		}
	}
	require.Equal(t, 1, stored)
	_, err = r.Erase(t.Context(), Selection{Host: "b.test"}, "")
	require.ErrorIs(t, err, ErrReadOnly)
}

// What cannot be erased is refused before anything has changed, and damage is kept and reported.
func TestErasureIsRefused(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	_, err := a.Append(page("http://a.test/", "x"))
	require.NoError(t, err)
	for _, s := range []Selection{{}, {URL: "http://a.test/", Host: "a.test"}, {Digest: "sha1:x"}} {
		_, err = a.Erase(t.Context(), s, "")
		require.ErrorIs(t, err, ErrInvalid)
	}
	_, err = a.Erase(t.Context(), Selection{Host: "a.test"}, "two\nlines")
	require.ErrorIs(t, err, ErrInvalid)
	name, data, _ := deadFile(t)
	imported := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(imported, data, 0o600))
	_, err = a.Import(imported)
	require.NoError(t, err)
	_, err = a.Erase(t.Context(), Selection{URL: "http://a.test/1"}, "")
	require.ErrorContains(t, err, imported)
	report, err := a.Erase(t.Context(), Selection{Host: "unknown.test"}, "")
	require.NoError(t, err)
	require.Zero(t, report.Files)
	names, err := a.fs.List()
	require.NoError(t, err)
	require.NotContains(t, names, eraseName)
	require.Len(t, slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, "warc") }), 1)
}

// A change of a file after an erasure is found.
func TestVerifyProvesAnErasure(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	for i := range 3 {
		_, err := a.Append(page(fmt.Sprint("http://a.test/", i), "x"))
		require.NoError(t, err)
	}
	v, err := a.At("http://a.test/1", time.Time{})
	require.NoError(t, err)
	_, err = a.Erase(t.Context(), Selection{URL: "http://a.test/1"}, "asked for")
	require.NoError(t, err)
	path := filepath.Join(dir, v.Location.File)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[4]++ // the time in the header of a gzip member, which no checksum covers
	require.NoError(t, os.WriteFile(path, data, 0o600))
	var found []error
	_, err = a.Verify(t.Context(), func(f Fault) { found = append(found, f.Err) })
	require.NoError(t, err)
	require.Equal(t, []error{errKept}, found)
}

// Two erasures at one instant are told apart, as after a clock that was set back.
func TestVerifyKnowsTheLastErasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := openDir(t, t.TempDir(), Options{})
		for i := range 9 {
			_, err := a.Append(page(fmt.Sprint("http://a.test/", i), "x"))
			require.NoError(t, err)
		}
		for i := range 8 {
			_, err := a.Erase(t.Context(), Selection{URL: fmt.Sprint("http://a.test/", i)}, "asked for")
			require.NoError(t, err)
		}
		report, err := a.Verify(t.Context(), func(f Fault) { t.Error(f) })
		require.NoError(t, err)
		require.Zero(t, report.Faults)
	})
}

// The last change of a page was a body of another page, which is erased, so that it moved. A 304 still
// confirms it, also if a failure came in between.
func TestErasureKeepsTheLastChange(t *testing.T) {
	disk := vfs.NewMem()
	opts := Options{Share: true, Level: -1}
	a, err := OpenOn(disk, opts)
	require.NoError(t, err)
	shared := strings.Repeat("shared ", 200)
	require.NoError(t, appendText(a, "http://b.test/", shared, 0))
	require.NoError(t, appendText(a, "http://a.test/", "before", 1))
	require.NoError(t, appendText(a, "http://a.test/", shared, 2))
	for i, status := range []int{404, 304} {
		c := visit{"http://a.test/", someTime.Add(time.Duration(3+i) * time.Hour), status, ""}.capture()
		_, err = a.Append(c)
		require.NoError(t, err)
	}
	_, err = a.Erase(t.Context(), Selection{Host: "b.test"}, "asked for")
	require.NoError(t, err)
	require.NoError(t, a.Close())
	for range 2 {
		a, err = OpenOn(disk, opts)
		require.NoError(t, err)
		_, err = a.Append(visit{"http://a.test/", someTime.Add(5 * time.Hour), 304, ""}.capture())
		require.NoError(t, err)
		for _, hours := range []int{2, 4, 5} {
			v, err := a.At("http://a.test/", someTime.Add(time.Duration(hours)*time.Hour))
			require.NoError(t, err)
			require.Equal(t, shared, body(t, a, v), hours)
		}
		require.NoError(t, a.Close())
		_, err = RepairOn(disk, opts)
		require.NoError(t, err)
	}
}

// A caller that gives up while files with holes are read again does not wait for all of them.
func TestVerifyStopsAtATombstone(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{MaxFile: 1})
	for i := range 4 {
		require.NoError(t, appendText(a, fmt.Sprint("http://a.test/", i), "x", 1))
	}
	_, err := a.Erase(t.Context(), Selection{Host: "a.test"}, "asked for")
	require.NoError(t, err)
	names, err := a.Files()
	require.NoError(t, err)
	for _, name := range names {
		require.NoError(t, os.Truncate(filepath.Join(a.dir, name), 20))
	}
	ctx, cancel := context.WithCancel(t.Context())
	found := 0
	v := &verifier{archive: a, kept: map[string]tombstone{}, report: func(Fault) { found++; cancel() }}
	for _, name := range names {
		v.kept[name] = tombstone{size: 100}
	}
	require.ErrorIs(t, v.erasures(ctx), context.Canceled)
	require.Equal(t, 1, found)
}

// TestEraseBesideAHole: the second of two captures whose requests follow them is erased first, and then the
// other one, whose request is before that hole.
func TestEraseBesideAHole(t *testing.T) {
	var heads []warc.Head
	for _, url := range []string{"http://a.test/", "http://b.test/"} {
		r := response(url, wholeSecond, okHead+"secret of "+url)
		r.ID = warc.NewID()
		heads = append(heads, r, warc.Head{Type: "request", Date: wholeSecond, TargetURI: url, ConcurrentTo: r.ID,
			ContentType: "application/http;msgtype=request", Filename: "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"})
	}
	a := withForeign(t, heads...)
	for _, url := range []string{"http://b.test/", "http://a.test/"} {
		_, err := a.Erase(t.Context(), Selection{URL: url}, "asked for")
		require.NoError(t, err)
	}
	_, report := verify(t, a)
	require.Empty(t, report.Faults)
}

// TestDigestsOfOthersMoved: a version of another program's file is found after an erasure has moved it, whatever
// digest that program had claimed.
func TestDigestsOfOthersMoved(t *testing.T) {
	for _, digest := range []string{"", sha1Of([]byte("wrong")), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"} {
		original := response("http://a.test/", wholeSecond, okHead+"body")
		if digest != "" {
			original = claims(original, digest)
		}
		a := withForeign(t, original,
			revisitOf("http://b.test/", minuteOf(1), warc.ProfileIdentical, "http://a.test/", wholeSecond, digest, okHead))
		_, err := a.Erase(t.Context(), Selection{URL: "http://a.test/"}, "asked for")
		require.NoError(t, err)
		v, err := a.At("http://b.test/", minuteOf(2))
		require.NoError(t, err)
		body, err := a.Body(v)
		require.NoError(t, err, digest)
		require.Equal(t, "body", string(body))
	}
}
