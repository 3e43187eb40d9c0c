package archive

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

var torture = flag.Duration("torture", 0, "how long TestDamageMatchesModel goes on, with random seeds")

// TestDamageMatchesModel plays random histories of an archive and of a model: captures, syncs, commits,
// erasures, restarts, and disk errors, kills and power failures in the middle of each. Then it damages
// one file or two: bits flip, blocks become zeros, files are cut, anywhere or between two records, or are
// gone, records are in the place of others, in WARC files and in those of the index.
//
// Its law: every capture whose bytes are intact is readable, beside a writer, after a restart and with a new
// index. A capture that is not is reported with its file and offset. Nothing is ever served under the URL
// and time of another capture, nor with another body.
func TestDamageMatchesModel(t *testing.T) {
	if *torture > 0 {
		for end := time.Now().Add(*torture); time.Now().Before(end) && !t.Failed(); {
			seed := rand.Uint64()
			t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { damageSeed(t, seed) })
		}
		return
	}
	seeds := uint64(60)
	if testing.Short() {
		seeds = 16
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			damageSeed(t, seed)
		})
	}
}

func damageSeed(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 45))
	m := &damageModel{t: t, r: r, disk: vfs.NewMem(), all: map[string]*acknowledged{}, bodies: map[string]string{}}
	m.opts = Options{MaxFile: int64(1000 + r.IntN(8000)), Level: -1, Compressors: 1, Share: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		m.opts.Level = 1
	}
	m.opts.Compression = []warc.Compression{warc.Gzip, warc.Zstd}[r.IntN(2)]
	m.live()
	m.locate()
	for range 12 {
		m.damage()
	}
}

// acknowledged is a capture whose Append has returned nil.
type acknowledged struct {
	url, method, body string
	time              time.Time
	synced            bool    // a power failure must not lose it
	unsure            bool    // the disk failed before it was synced: only the next Open makes up for that
	doomed            bool    // an erasure that failed selects it
	version           Version // as found before the damage
}

func (c *acknowledged) key() string { return c.url + " " + c.time.Format(time.RFC3339Nano) }

// damageModel is an archive and its model.
type damageModel struct {
	t      *testing.T
	r      *rand.Rand
	disk   *vfs.Mem
	opts   Options
	all    map[string]*acknowledged // by key
	bodies map[string]string        // of all that was ever appended, acknowledged or not
	n      int                      // captures
	known  map[string]indexed       // files of the index, before the damage
}

// live plays the history. The archive is closed, or its process killed, at the end.
func (m *damageModel) live() {
	a := m.restart(nil, false)
	for range 30 + m.r.IntN(40) {
		planned := []error{syscall.EIO, syscall.ENOSPC, vfs.ErrPower}[m.r.IntN(3)]
		if m.r.IntN(8) == 0 {
			m.disk.FailAt(m.disk.Steps()+1+m.r.IntN(15), []error{planned, nil, planned}[m.r.IntN(2):]...)
		}
		var err error
		switch m.r.IntN(14) {
		case 0:
			err = a.Commit()
		case 1:
			if err = a.Sync(); err == nil {
				m.synced()
			}
		case 2:
			err = m.erase(a)
		case 3:
			if err = a.Close(); err == nil {
				m.synced()
			}
			a = m.restart(nil, errors.Is(err, vfs.ErrPower))
		case 4:
			a = m.restart(a, false)
		default:
			err = m.append(a)
		}
		for _, c := range m.all {
			c.unsure = c.unsure || err != nil && !c.synced
		}
		if errors.Is(err, vfs.ErrPower) {
			a = m.restart(a, true)
		}
	}
	m.disk.FailAt(0)
	if m.r.IntN(3) > 0 {
		require.NoError(m.t, m.restart(a, false).Close())
	}
	m.disk = m.disk.Clone()
}

func (m *damageModel) synced() {
	for _, c := range m.all {
		c.synced = c.synced || !c.unsure
	}
}

func (m *damageModel) append(a *Archive) error {
	m.n++
	c := page(fmt.Sprintf("http://%c.test/%d", "ab"[m.r.IntN(2)], m.r.IntN(5)),
		strings.Repeat(fmt.Sprint("body ", m.r.IntN(6), " "), 100+m.r.IntN(2)*60))
	c.Time = someTime.UTC().Truncate(time.Microsecond).Add(time.Duration(m.n) * time.Minute)
	k := &acknowledged{url: c.URL, method: "GET", body: string(c.Body), time: c.Time}
	switch m.r.IntN(4) {
	case 0:
		c.Request = nil
	case 1:
		k.method, c.Request = "POST", fmt.Appendf(nil, "POST / HTTP/1.1\r\n\r\nform %d", m.n)
	}
	m.bodies[k.key()] = k.body
	_, err := a.Append(c)
	if err == nil {
		m.all[k.key()] = k
	}
	return err
}

func (m *damageModel) erase(a *Archive) error {
	s := Selection{URL: fmt.Sprintf("http://a.test/%d", m.r.IntN(5))}
	if m.r.IntN(2) == 0 {
		s = Selection{Host: "b.test", To: someTime.Add(time.Duration(m.r.IntN(m.n+1)) * time.Minute)}
	}
	_, err := a.Erase(m.t.Context(), s, "asked for")
	for key, c := range m.all {
		switch {
		case c.url != s.URL && (s.Host == "" || !strings.HasPrefix(c.url, "http://b.test/") || !c.time.Before(s.To)):
		case err == nil:
			delete(m.all, key)
		default:
			c.doomed = true
		}
	}
	return err
}

// restart opens the archive, after a kill of the process if it has one, or a power failure. What must have
// survived is there.
func (m *damageModel) restart(a *Archive, power bool) *Archive {
	switch {
	case power:
		m.disk = m.disk.Crash(m.r)
	case a != nil:
		m.disk = m.disk.Clone()
	}
	m.disk.FailAt(0)
	a, err := OpenOn(m.disk, m.opts)
	require.NoError(m.t, err)
	for key, c := range m.all {
		v, err := find(a, c)
		if err == nil {
			var body []byte
			body, err = a.Body(v)
			require.True(m.t, err != nil || string(body) == c.body, key)
		}
		if err != nil {
			require.True(m.t, c.doomed || power && !c.synced, "%s is lost: %v", key, err)
			delete(m.all, key)
		}
		c.doomed, c.unsure = false, false
	}
	m.synced()
	return a
}

// find returns the version of a capture.
func find(a *Archive, c *acknowledged) (v Version, err error) {
	versions, err := a.Answers(c.url, c.method, "")
	at := slices.IndexFunc(versions, func(v Version) bool { return v.Time.Equal(c.time) })
	if err != nil || at < 0 {
		return v, errors.Join(err, ErrNotFound)
	}
	if c.method != "GET" {
		return versions[at], nil
	}
	v, err = a.At(c.url, c.time)
	if err == nil && !v.Time.Equal(c.time) {
		err = fmt.Errorf("%w: there is one of %v", ErrNotFound, v.Time)
	}
	return v, err
}

// locate notes where the captures are, and what the index on disk knows.
func (m *damageModel) locate() {
	x, err := openIndex(m.disk.Clone(), readIndex)
	require.NoError(m.t, err)
	m.known = x.indexedFiles()
	a, err := OpenOn(m.disk.Clone(), m.opts)
	require.NoError(m.t, err)
	for key, c := range m.all {
		if c.version, err = find(a, c); c.doomed && err != nil {
			delete(m.all, key)
			continue
		}
		require.NoError(m.t, err)
	}
}

// hit is a part of a file that is damaged.
type hit struct {
	what, file string // without .open
	from, to   int64
}

func (h hit) touches(loc Location) bool {
	return loc.File == h.file && loc.Offset < h.to && loc.Offset+loc.Length > h.from
}

// damage damages a copy of the archive, and checks the law.
func (m *damageModel) damage() {
	disk := m.disk.Clone()
	var hits []hit
	for range 1 + m.r.IntN(2) {
		names, err := disk.List()
		require.NoError(m.t, err)
		index := m.r.IntN(3) == 0
		names = slices.DeleteFunc(names, func(name string) bool {
			return strings.HasPrefix(name, indexName) != index || !index && !isWARC(name)
		})
		if len(names) > 0 {
			hits = append(hits, m.hit(disk, names[m.r.IntN(len(names))]))
		}
	}
	l := &law{damageModel: m, disk: disk, hits: hits}
	ok := false
	defer func() {
		if !ok || m.t.Failed() {
			m.t.Logf("%+v %+v", hits, l.faults)
		}
	}()
	l.check()
	ok = true
}

// hit damages one file.
func (m *damageModel) hit(disk *vfs.Mem, onDisk string) hit {
	data, name := disk.Data(onDisk), strings.TrimSuffix(onDisk, unfinished)
	size := int64(len(data))
	at := m.r.Int64N(size + 1)
	h := hit{"cut", name, at, math.MaxInt64}
	var records []Location
	for _, c := range m.all {
		if c.version.Location.File == name {
			records = append(records, c.version.Location)
		}
	}
	switch kind := m.r.IntN(6); {
	case kind == 0 && size > 0:
		h = hit{"flip", name, at % size, at%size + 1}
		disk.Flip(onDisk, h.from, m.r.IntN(8))
		return h
	case kind == 1:
		h = hit{"zeros", name, at, min(at+m.r.Int64N(300), size)}
		clear(data[h.from:h.to])
	case kind == 2:
		require.NoError(m.t, disk.Remove(onDisk))
		return hit{"removal", name, 0, math.MaxInt64}
	case kind == 3 && len(records) > 0:
		to, from := records[m.r.IntN(len(records))], records[m.r.IntN(len(records))]
		part := bytes.Clone(data[min(from.Offset, size):min(from.Offset+from.Length, size)])
		n := int64(copy(data[min(to.Offset, size):], part)) // after another cut, there may be nothing
		h = hit{"copy", name, to.Offset, to.Offset + n}
	case kind >= 4 && len(records) > 0:
		h.what, h.from = "cut at border", records[m.r.IntN(len(records))].Offset
		data = data[:min(h.from, size)]
	default:
		data = data[:at]
	}
	disk.Put(onDisk, data)
	return h
}

// law is what is required of a damaged archive.
type law struct {
	*damageModel
	disk   *vfs.Mem
	hits   []hit
	faults []Fault
}

func (l *law) touches(loc Location) bool {
	return slices.ContainsFunc(l.hits, func(h hit) bool { return h.touches(loc) })
}

func (l *law) check() {
	before := l.disk.Steps()
	reader, err := follow("/archive", l.disk, Options{ReadOnly: true})
	if !errors.Is(err, ErrIndex) { // a reader needs a sound one
		require.NoError(l.t, err)
		if l.report(reader) {
			l.require(reader, false)
		}
		require.NoError(l.t, reader.Close())
	}
	require.Equal(l.t, before, l.disk.Steps(), "a reader has written")
	for round := range 3 {
		opts := l.opts
		opts.Reindex = round == 1
		a, err := l.open(opts)
		require.NoError(l.t, err)
		if !l.report(a) { // the next Open makes the index anew
			require.NoError(l.t, l.append(a))
			delete(l.all, l.newest().key())
			require.ErrorIs(l.t, a.Close(), ErrIndex)
			a, err = l.open(l.opts)
			require.NoError(l.t, err)
			require.True(l.t, l.report(a))
		}
		l.require(a, true)
		require.NoError(l.t, l.append(a))
		delete(l.all, l.last(a).key()) // of this copy alone
		require.NoError(l.t, a.Close())
	}
}

// newest returns the capture that was appended last.
func (l *law) newest() (last *acknowledged) {
	for _, c := range l.all {
		if last == nil || c.time.After(last.time) {
			last = c
		}
	}
	return last
}

// last returns the capture that was appended last, which must be readable, unless it repeats a damaged one.
func (l *law) last(a *Archive) *acknowledged {
	last := l.newest()
	v, err := find(a, last)
	require.NoError(l.t, err)
	body, err := a.Body(v)
	if !l.touches(v.Content) {
		require.NoError(l.t, err)
		require.Equal(l.t, last.body, string(body))
	}
	return last
}

func (l *law) open(opts Options) (*Archive, error) {
	if opts.Reindex {
		return reindex("/archive", l.disk, opts)
	}
	return openOrRebuild("/archive", l.disk, opts)
}

// report collects what an archive reports. It is false if the index is damaged.
func (l *law) report(a *Archive) bool {
	found := a.Recovered()
	l.faults = append(l.faults, found.Damage...)
	for _, name := range append(a.Missing(), found.Missing...) {
		l.faults = append(l.faults, Fault{File: name, Offset: -1, Err: fs.ErrNotExist})
	}
	collect := func(f Fault) { l.faults = append(l.faults, f) }
	_, err := a.Verify(l.t.Context(), collect)
	if errors.Is(err, ErrIndex) {
		return false
	}
	require.NoError(l.t, err)
	return true
}

func (l *law) require(a *Archive, all bool) {
	l.t.Helper()
	for v, err := range a.All() {
		require.NoError(l.t, err)
		key := v.URL + " " + v.Time.Format(time.RFC3339Nano)
		want, appended := l.bodies[key]
		require.True(l.t, appended, "%s was never appended", key)
		if body, err := a.Body(v); err == nil {
			require.Equal(l.t, want, string(body), key)
		}
	}
	for key, c := range l.all {
		v, err := find(a, c)
		if err == nil {
			_, err = a.Body(v)
		}
		if err == nil {
			continue
		}
		touched := l.touches(c.version.Location) || l.touches(c.version.Content)
		require.True(l.t, touched, "%s is intact, and lost: %v %+v", key, err, c.version)
		require.True(l.t, !all || l.isReported(c), "the loss of %s is not reported: %v %+v", key, err, c.version)
	}
}

// isReported reports whether a fault covers the record of a capture, or of its body. Two losses cannot be
// known: a record that was cut off behind the part of its file that the index knows, as a power failure
// may do; and one in whose place there is an exact copy of another, if the index is damaged as well.
func (l *law) isReported(c *acknowledged) bool {
	if slices.ContainsFunc(l.hits, func(h hit) bool { return h.what == "copy" }) &&
		slices.ContainsFunc(l.hits, func(h hit) bool { return strings.HasPrefix(h.file, indexName) }) {
		return true
	}
	for _, loc := range []Location{c.version.Location, c.version.Content} {
		if l.known[loc.File].end < loc.Offset+loc.Length {
			return true
		}
		for _, f := range l.faults {
			if f.File == loc.File && f.Offset < loc.Offset+loc.Length &&
				(f.Length == 0 || f.Offset < 0 || f.Offset+f.Length > loc.Offset) {
				return true
			}
		}
	}
	return false
}
