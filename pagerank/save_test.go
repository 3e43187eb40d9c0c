package pagerank

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
)

func saved(t *testing.T, f *Frontier) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := f.WriteTo(&b)
	require.NoError(t, err)
	require.Equal(t, int64(b.Len()), n)
	return b.Bytes()
}

func TestReadedFrontierGoesOnAsIfNothingHadHappened(t *testing.T) {
	for name, opts := range keepers {
		for seed := range uint64(2) {
			r := rand.New(rand.NewPCG(seed, 10))
			f := New(opts)
			for range 80 {
				edit(r, f, map[uint32][]uint32{})
			}
			for host := range uint32(7) { // a file has no busy hosts
				for f.lots[host] != nil {
					f.Release(host)
				}
			}
			file := saved(t, f)
			got, err := Read(bytes.NewReader(file), opts)
			require.NoError(t, err, name)
			requireLaw(t, got)
			require.Equal(t, file, saved(t, got), name)
			a, b := rand.New(rand.NewPCG(seed, 11)), rand.New(rand.NewPCG(seed, 11))
			for range 80 {
				did := edit(a, f, map[uint32][]uint32{})
				require.Equal(t, did, edit(b, got, map[uint32][]uint32{}), name)
			}
			require.InDelta(t, f.Stats().Error, got.Stats().Error, 1e-9)
			require.InDelta(t, f.Stats().Mass, got.Stats().Mass, 1e-9)
			requireLaw(t, got)
		}
	}
}

func TestReadedDL1KnowsItsBounds(t *testing.T) {
	g, opts := testWeb(300, 2), Options{Cutoff: DL1, Damping: .85}
	f := New(opts)
	f.Discover(0)
	for range 100 {
		id, _ := f.Next()
		f.Fetched(id, g.Links(id))
	}
	got, err := Read(bytes.NewReader(saved(t, f)), opts)
	require.NoError(t, err)
	require.InDelta(t, f.Stats().Error, got.Stats().Error, 1e-9)
	require.InDelta(t, f.Stats().Mass, got.Stats().Mass, 1e-9)
	require.Equal(t, crawl(f, g), crawl(got, g))
}

func TestReadWantsTheSameOptions(t *testing.T) {
	file := saved(t, New(Options{}))
	for _, opts := range []Options{
		{Damping: .5}, {Cutoff: DL1, Damping: .85},
		{Host: func(uint32) uint32 { return 0 }},
	} {
		_, err := Read(bytes.NewReader(file), opts)
		require.ErrorIs(t, err, ErrOptions)
	}
	_, err := Read(bytes.NewReader(file), Options{Cutoff: AR, Damping: .85})
	require.NoError(t, err, "the cutoff may change, for AR and Push need the same")
}

// example is the frontier of FORMAT.md's dump.
func example() *Frontier {
	f := New(Options{Cutoff: AR, Host: tenPerHost})
	f.Discover(2)
	f.Fetched(0, []uint32{1, 12})
	f.NextReady(func(host uint32) bool { return host != 1 })
	f.Discover(1)
	return f
}

func TestFormatIsThatOfThePage(t *testing.T) {
	text, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "```hexdump example\n")
	require.True(t, ok)
	want, _, _ := strings.Cut(rest, "```")
	require.Equal(t, want, hex.Dump(saved(t, example())))
}

func TestFilesOfOtherVersionsAreNamed(t *testing.T) {
	body := payload(saved(t, example()))
	for m, want := range map[string]error{magic: nil, "SPNRANK3": ErrVersion, "SPNRANK5": ErrVersion} {
		_, err := Read(bytes.NewReader(forged(m, body)), example().opts)
		require.ErrorIs(t, err, want, m)
		require.NotErrorIs(t, err, ErrCorrupt)
	}
	_, err := Read(strings.NewReader("SPRF\x03 and so on"), example().opts)
	require.ErrorIs(t, err, ErrVersion)
	file := saved(t, example())
	file[7]++
	_, err = Read(bytes.NewReader(file), example().opts)
	require.ErrorIs(t, err, ErrCorrupt, "a version without its checksum")
	_, err = Read(bytes.NewReader(saved(t, example())), Options{Cutoff: AR, Host: tenPerHost, Limit: 12})
	require.ErrorIs(t, err, ErrOptions, "13 ids are no damage")
}

// What waited for a busy host must not wait for a Release that nobody will make.
func TestNothingStaysAsideInAFile(t *testing.T) {
	u := NewURLs(Options{})
	u.Fetched("http://s.test/", []string{"http://a.test/1", "http://b.test/1", "http://a.test/2"})
	_, ok := u.NextReady(func(string) bool { return false })
	require.False(t, ok)
	require.Equal(t, 3, u.Stats().Aside)
	var file bytes.Buffer
	_, err := u.WriteTo(&file)
	require.NoError(t, err)
	u, err = ReadURLs(&file, Options{})
	require.NoError(t, err)
	require.Zero(t, u.Stats().Aside)
	var urls []string
	for url, ok := u.NextReady(func(string) bool { return true }); ok; url, ok = u.Next() {
		if urls = append(urls, url); len(urls) == 3 {
			break
		}
	}
	require.ElementsMatch(t, []string{"http://a.test/1", "http://b.test/1", "http://a.test/2"}, urls)
}

func TestBrokenFilesAreRefused(t *testing.T) {
	f := example()
	file := saved(t, f)
	for cut := range file {
		_, err := Read(bytes.NewReader(file[:cut]), f.opts)
		require.ErrorIs(t, err, ErrCorrupt, "cut at %d", cut)
		var where *CorruptError
		require.ErrorAs(t, err, &where)
		require.LessOrEqual(t, where.Offset, int64(cut))
	}
	for at := range file {
		for bit := range 3 {
			broken := bytes.Clone(file)
			broken[at] ^= 1 << (bit * 3)
			_, err := Read(bytes.NewReader(broken), f.opts)
			require.Error(t, err, "bit %d of byte %d", 3*bit, at)
		}
	}
	disk := errors.New("disk")
	_, err := Read(io.MultiReader(bytes.NewReader(file[:20]), failing{disk}), f.opts)
	require.ErrorIs(t, err, disk)
	_, err = f.WriteTo(failing{disk})
	require.ErrorIs(t, err, disk)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

// payload returns what is in the frames of a file.
func payload(file []byte) (body []byte) {
	for at := len(magic); at < len(file); {
		n := int(binary.LittleEndian.Uint32(file[at:]))
		body = append(body, file[at+4:at+4+n]...)
		at += 4 + n + 4
	}
	return body
}

// forged returns a file with right checksums.
func forged(magic string, body []byte) []byte {
	var file bytes.Buffer
	w := durable.NewStreamWriter(&file, magic)
	_, _ = w.Write(body)
	_, _ = w.Close()
	return file.Bytes()
}

// FuzzRead feeds bodies with right checksums: what loads has to obey the law, to work, and to save
// as something that loads and saves alike.
func FuzzRead(f *testing.F) {
	seeds := []*Frontier{example(), New(Options{Cutoff: AR, Host: tenPerHost})}
	r := rand.New(rand.NewPCG(1, 12))
	many := New(seeds[0].opts)
	for range 40 {
		edit(r, many, map[uint32][]uint32{})
	}
	for _, s := range append(seeds, many) {
		var b bytes.Buffer
		if _, err := s.WriteTo(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(payload(b.Bytes()))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		opts := Options{Cutoff: AR, Host: tenPerHost, Limit: 1 << 20}
		got, err := Read(bytes.NewReader(forged(magic, body)), opts)
		if err != nil {
			t.Skip()
		}
		once := saved(t, got)
		again, err := Read(bytes.NewReader(once), opts)
		require.NoError(t, err)
		require.Equal(t, once, saved(t, again))
		for id, ok := got.Next(); ok; id, ok = got.Next() {
			other, _ := again.Next()
			require.Equal(t, id, other)
			got.Fetched(id, []uint32{0, 1, id + 1})
			again.Fetched(id, []uint32{0, 1, id + 1})
			if id > 1000 {
				break // each page has led to the next
			}
		}
	})
}

// A fullDisk takes some bytes and no more.
type fullDisk struct {
	room  int
	taken int64
}

var errFull = errors.New("full")

func (d *fullDisk) Write(p []byte) (n int, err error) {
	if n = min(len(p), d.room); n < len(p) {
		err = errFull
	}
	d.room -= n
	d.taken += int64(n)
	return n, err
}

func TestWriteToCountsWhatWasTaken(t *testing.T) {
	f := New(Options{Cutoff: DL1})
	crawl(f, testWeb(20_000, 1), 0)
	for _, room := range []int{0, 1, 1 << 16, 100_000} {
		d := &fullDisk{room: room}
		n, err := f.WriteTo(d)
		require.ErrorIs(t, err, errFull)
		require.Equal(t, d.taken, n, "room for %d", room)
	}
}

func TestWriteToHoldsLittleOfALongQueue(t *testing.T) {
	const ids = 200_000
	f := New(Options{Cutoff: DL1, Host: func(id uint32) uint32 { return id / ids }})
	for id := range uint32(2 * ids) {
		f.Discover(id)
	}
	f.NextReady(func(host uint32) bool { return host == 1 }) // half is set aside, half in one bucket
	var long countingWriter
	n, err := f.WriteTo(&long)
	require.NoError(t, err)
	require.Equal(t, int64(long.bytes), n)
	require.LessOrEqual(t, long.longest, 1<<16, "in pieces, though no node is between the ids")
}

// A countingWriter notes how much it gets, and how much at once.
type countingWriter struct{ bytes, longest int }

func (c *countingWriter) Write(p []byte) (int, error) {
	c.bytes += len(p)
	c.longest = max(c.longest, len(p))
	return len(p), nil
}

func TestTheCountOfUpdatesSurvivesWhereAnIntIsShort(t *testing.T) {
	f := New(Options{})
	f.sums.updates = 1 << 40
	got, err := Read(bytes.NewReader(saved(t, f)), Options{})
	require.NoError(t, err)
	require.Equal(t, uint64(1)<<40, got.sums.updates)
	require.Positive(t, got.Stats().Updates)
}

func TestANumberWithoutAnEndIsRefused(t *testing.T) {
	const credit = 17 // where the first number of any length is
	body := payload(saved(t, New(Options{})))
	long := append(bytes.Repeat([]byte{0x80}, 10), body[credit])
	_, err := Read(bytes.NewReader(forged(magic, slices.Concat(body[:credit], long, body[credit+1:]))), Options{})
	require.ErrorIs(t, err, ErrCorrupt)
}

// TestForgedNumbersAreRefused has numbers whose sums would be infinite, or overflow.
func TestForgedNumbersAreRefused(t *testing.T) {
	opts := Options{Host: tenPerHost}
	for name, forge := range map[string]func(f *Frontier){
		"a score":          func(f *Frontier) { f.nodes[0].score = math.MaxFloat64 },
		"a negative score": func(f *Frontier) { f.nodes[1].score = -1e300 },
		"what was passed":  func(f *Frontier) { f.passed[0] = -math.MaxFloat64 },
		"what was put in":  func(f *Frontier) { f.sums.put = math.MaxFloat64 },
		"cash":             func(f *Frontier) { f.hosts.cash[1] = math.MaxFloat32 },
		"credit":           func(f *Frontier) { f.sums.credit = math.MaxInt64 },
		"debt":             func(f *Frontier) { f.sums.credit = math.MinInt64 },
	} {
		f := New(opts)
		f.Discover(2)
		f.Fetched(0, []uint32{1, 12})
		_, err := Read(bytes.NewReader(saved(t, f)), opts)
		require.NoError(t, err)
		forge(f)
		_, err = Read(bytes.NewReader(saved(t, f)), opts)
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
}
