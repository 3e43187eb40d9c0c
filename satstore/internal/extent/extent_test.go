package extent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A shelf is some parts of one file, with their expected entries.
type shelf struct {
	t      testing.TB
	random *rand.Rand
	fs     *vfs.Mem
	f      *File
	pool   *Pool
	parts  []*shelfPart
	taken  []*Group // that could not be written

	mu sync.Mutex // guards the parts and the pool
}

type shelfPart struct {
	Part
	id      uint64
	entries []string
	gone    uint64 // of entries
}

func newShelf(t testing.TB, seed uint64, writers int) *shelf {
	fs := vfs.NewMem()
	f, err := Create(fs, writers)
	require.NoError(t, err)
	s := &shelf{t: t, random: rand.New(rand.NewPCG(seed, 9)), fs: fs, f: f}
	s.pool = NewPool(1<<20, 512)
	for range 5 {
		s.parts = append(s.parts, &shelfPart{id: uint64(len(s.parts))})
	}
	return s
}

func (s *shelf) append(p *shelfPart) {
	n := s.random.IntN(200)
	if s.random.IntN(50) == 0 {
		n = s.random.IntN(50_000)
	}
	entry := durable.AppendBytes(nil, fmt.Sprintf("%d/%d %*d", p.id, len(p.entries), n, 0))
	p.Append(s.pool, len(entry), nil, func(b []byte) []byte { return append(b, entry...) })
	p.entries = append(p.entries, string(entry))
}

// adopt adopts a written group, as a store does.
func (s *shelf) adopt(g *Group, e Extent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if dropped := g.Adopt(s.pool, e); dropped.N > 0 {
		s.f.Release(dropped)
	}
}

// take takes the entries in memory of some parts.
func (s *shelf) take() {
	for _, p := range s.parts {
		if s.random.IntN(2) == 0 {
			s.taken = p.Take(s.taken, p.id, Records, 1)
			require.Zero(s.t, p.Buffered())
			s.random.Shuffle(len(s.taken), func(i, j int) {
				s.taken[i], s.taken[j] = s.taken[j], s.taken[i]
			})
		}
	}
}

// compare reads all entries of a part.
func (s *shelf) compare(p *Part, of *shelfPart) {
	s.t.Helper()
	r := NewReader(s.f, nil, NoMore)
	defer r.Close()
	r.Open(p, of.id, Records)
	at := uint64(0)
	for at < p.Count() {
		found, err := r.Next(at)
		require.NoError(s.t, err)
		require.NotZero(s.t, found.Count)
		require.True(s.t, found.First <= at || at < of.gone)
		d := durable.Decoder{B: found.Raw}
		for at = found.First; at < found.First+uint64(found.Count); at++ {
			got := string(durable.AppendBytes(nil, d.Bytes(1<<20)))
			if got != of.entries[at] {
				s.t.Fatalf("entry %d is %.50q, want %.50q", at, got, of.entries[at])
			}
		}
		require.Empty(s.t, d.B)
	}
	require.EqualValues(s.t, len(of.entries), at)
	found, err := r.Next(at)
	require.NoError(s.t, err)
	require.Zero(s.t, found.Count)
}

func (s *shelf) play() {
	p := s.parts[s.random.IntN(len(s.parts))]
	switch s.random.IntN(13) {
	case 0:
		s.take()
	case 1:
		if s.random.IntN(3) == 0 {
			s.fs.FailAt(s.fs.Steps()+1+s.random.IntN(4), errors.New("bad disk"))
		}
		if s.f.Write(s.taken, s.adopt) == nil {
			s.taken = nil
		}
		s.fs.FailAt(0, nil)
	case 2:
		s.compare(&p.Part, p)
	case 3:
		v := p.View()
		was := *p
		for range 100 {
			s.append(p)
		}
		s.take()
		if s.f.Write(s.taken, s.adopt) == nil {
			s.taken = nil
		}
		s.compare(&v, &was)
		v.Release()
	case 4:
		p.Clear(s.pool, s.f.Release)
		p.entries, p.gone = nil, 0
	case 5:
		limit := s.random.Uint64N(p.Count() + 1)
		p.gone = max(p.gone, limit)
		p.Trim(func(_, to uint64) bool { return to <= limit }, s.f.Release)
	case 6:
		require.NoError(s.t, s.f.Free(s.f.Cut()))
	default:
		for range s.random.IntN(300) {
			s.append(p)
		}
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		s := newShelf(t, seed, 1+int(seed%3))
		for range 200 {
			s.play()
		}
		var used []Span
		for _, p := range s.parts {
			s.compare(&p.Part, p)
		}
		s.take()
		require.NoError(t, s.f.Write(s.taken, s.adopt))
		for _, p := range s.parts {
			for _, e := range p.Extents() {
				used = append(used, e.Span())
				require.LessOrEqual(t, e.Size, uint32(MaxSize))
			}
			p.Clear(s.pool, func(Span) {})
		}
		require.Zero(t, s.pool.Used())
		require.NoError(t, s.f.Free(s.f.Cut()))
		size, free := s.f.Size()
		again, err := OpenFile(s.fs, used, 1)
		require.NoError(t, err)
		sameSize, sameFree := again.Size()
		require.Equal(t, size, sameSize)
		require.Equal(t, free, sameFree)
		require.EqualValues(t, len(s.fs.Data(Name)), size)
		require.NoError(t, s.f.Close())
	}
}

// TestConcurrentReads reads parts while they are appended to, and written.
func TestConcurrentReads(t *testing.T) {
	s := newShelf(t, 1, 3)
	p := s.parts[0]
	done := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		defer close(done)
		for range 30 {
			s.mu.Lock()
			for range 300 {
				s.append(p)
			}
			groups := p.Take(nil, p.id, Records, 1)
			s.mu.Unlock()
			require.NoError(t, s.f.Write(groups, s.adopt))
			require.NoError(t, s.f.Free(s.f.Cut()))
		}
	})
	r := NewReader(s.f, &s.mu, NoMore)
	defer r.Close()
	r.Open(&p.Part, p.id, Records)
	for at := uint64(0); ; {
		found, err := r.Next(at)
		require.NoError(t, err)
		d := durable.Decoder{B: found.Raw}
		s.mu.Lock()
		for i := range uint64(found.Count) {
			if got := string(durable.AppendBytes(nil, d.Bytes(1<<20))); got != p.entries[found.First+i] {
				t.Errorf("entry %d is %.50q", found.First+i, got)
			}
		}
		s.mu.Unlock()
		if at = found.First + uint64(found.Count); found.Count == 0 {
			select {
			case <-done:
				others.Wait()
				return
			default:
				at = 0
			}
		}
	}
}

// TestFileShrinks: a file is truncated once the extents at its end are no longer needed and not
// pinned.
func TestFileShrinks(t *testing.T) {
	s := newShelf(t, 2, 2)
	for _, p := range s.parts {
		for range 2000 {
			s.append(p)
		}
		require.NoError(t, s.f.Write(p.Take(nil, p.id, Records, 1), s.adopt))
	}
	full, free := s.f.Size()
	require.Zero(t, free)
	require.EqualValues(t, len(s.fs.Data(Name)), full)
	kept := s.parts[0]
	for _, p := range s.parts[1:] {
		p.Clear(s.pool, s.f.Release)
	}
	size, free := s.f.Size()
	require.Equal(t, full, size)
	require.Positive(t, free)
	pin := s.f.Pin()
	require.NoError(t, s.f.Free(s.f.Cut()))
	size, _ = s.f.Size()
	require.Equal(t, full, size)
	s.f.Unpin(pin)
	later := s.f.Pin() // needs nothing of that
	require.NoError(t, s.f.Free(Cut{}))
	s.f.Unpin(later)
	require.NoError(t, s.f.Free(s.f.Cut()))
	size, _ = s.f.Size()
	require.Less(t, size, full/4)
	require.EqualValues(t, len(s.fs.Data(Name)), size)
	s.compare(&kept.Part, kept)
}

func TestPutAndRead(t *testing.T) {
	s := newShelf(t, 3, 1)
	b := Block{Magic: Places, Bucket: 7, First: 3, Count: 2, Raw: []byte("numbers")}
	e, err := s.f.Put(b, 5)
	require.NoError(t, err)
	require.Equal(t, Extent{At: 1, Size: Header + 7, Generation: 5}, e)
	image := make([]byte, e.Size)
	require.NoError(t, s.f.Read(image, e))
	found, size, reason := Open(image)
	require.Empty(t, reason)
	require.EqualValues(t, e.Size, size)
	require.Equal(t, b, found)
	s.fs.SetSpace(s.fs.Used())
	e, err = s.f.Put(b, 5)
	require.Error(t, err)
	require.Zero(t, e, "there is no extent to release")
}

// TestDamage: each flipped bit of an extent is reported with its location on reading, and the
// entries outside its block can be read.
func TestDamage(t *testing.T) {
	s := newShelf(t, 4, 1)
	p := s.parts[0]
	for range 1000 {
		s.append(p)
	}
	require.NoError(t, s.f.Write(p.Take(nil, p.id, Records, 1), s.adopt))
	e := p.Extents()[0]
	for range 100 {
		at, bit := s.random.Int64N(int64(e.Size)), s.random.IntN(8)
		s.fs.Flip(Name, e.Offset()+at, bit)
		r := NewReader(s.f, nil, nil)
		r.Open(&p.Part, p.id, Records)
		read, lost := uint64(0), uint64(0)
		for next := uint64(0); next < p.Count(); {
			found, err := r.Next(next)
			require.Equal(t, next, found.First)
			require.Positive(t, found.Count)
			if next += uint64(found.Count); err == nil {
				read += uint64(found.Count)
				continue
			}
			lost += uint64(found.Count)
			var where *durable.CorruptError
			require.ErrorAs(t, err, &where)
			require.Equal(t, Name, where.File)
			require.LessOrEqual(t, where.Offset, e.Offset()+at)
		}
		require.Positive(t, lost)
		require.Equal(t, p.Count(), read+lost)
		s.fs.Flip(Name, e.Offset()+at, bit)
	}
}

// TestOpenFileRefuses files that are not a data file, and overlapping spans.
func TestOpenFileRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		head string
		used []Span
	}{
		"another file":      {"SATBKT1\n", nil},
		"an empty file":     {"", nil},
		"overlapping spans": {FileHeader, []Span{{4, 3}, {6, 1}}},
		"within the header": {FileHeader, []Span{{0, 1}}},
	} {
		fs := vfs.NewMem()
		fs.Put(Name, []byte(tt.head))
		_, err := OpenFile(fs, tt.used, 1)
		require.ErrorIs(t, err, durable.ErrCorrupt, name)
	}
}

// TestSpace: no two spans that are in use overlap.
func TestSpace(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 4))
	s := &space{end: 1}
	owned := map[uint32]bool{0: true}
	var used []Span
	for range 3000 {
		if random.IntN(10) < 6 {
			f := Span{N: 1 + uint32(random.IntN(20))}
			at, fits := s.take(f.N)
			require.True(t, fits)
			f.At = at
			for i := f.At; i < f.End(); i++ {
				require.False(t, owned[i])
				owned[i] = true
			}
			used = append(used, f)
		} else if len(used) > 0 {
			i := random.IntN(len(used))
			f := used[i]
			s.give([]Span{f})
			for i := f.At; i < f.End(); i++ {
				delete(owned, i)
			}
			used = append(used[:i], used[i+1:]...)
		}
	}
	again, overlap := newSpace(used)
	require.EqualValues(t, -1, overlap)
	require.Equal(t, s.free, again.free)
	require.Equal(t, s.end, again.end)
	require.EqualValues(t, s.freeGrains()+int64(len(owned)), s.end)
	s.end = MaxGrains - 3
	_, fits := s.take(1 << 20)
	require.False(t, fits)
}

// TestBuffer: the blocks of a buffer have its entries, whatever the size of a page.
func TestBuffer(t *testing.T) {
	for _, page := range []int{512, 4096, 1 << 20} {
		p := NewPool(1<<20, page)
		random := rand.New(rand.NewPCG(2, uint64(page)))
		var b buffer
		var want []byte
		count := 0
		for len(want) < 3*BlockSize {
			entry := make([]byte, random.IntN(3000))
			for i := range entry {
				entry[i] = byte(random.Int())
			}
			b.append(p, entry)
			want = append(want, entry...)
			count++
		}
		var got []byte
		for i := range b.cuts {
			raw, n := b.block(i, nil)
			require.Less(t, len(raw), BlockSize+3000)
			got = append(got, raw...)
			count -= n
		}
		require.Equal(t, want, got)
		require.Zero(t, count)
		require.EqualValues(t, (len(want)+page-1)/page*page, p.Used())
		b.free(p)
		require.Zero(t, p.Used())
		require.False(t, p.Full(1))
		require.True(t, p.Full(0))
	}
}

// FuzzBlock: sealing an opened block gives the same bytes.
func FuzzBlock(f *testing.F) {
	b := Block{Magic: Records, Bucket: 7, First: 9, Count: 2}
	image := append(make([]byte, Header), "entries"...)
	b.Seal(image, 0)
	f.Add(image)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= Header { // otherwise the checksum would reject nearly all inputs
			b = append([]byte(nil), b...)
			size := min(len(b), Header+int(binary.LittleEndian.Uint32(b[8:])))
			binary.LittleEndian.PutUint32(b, durable.Sum(b[4:max(size, Header)]))
		}
		found, size, reason := Open(b)
		if reason != "" {
			return
		}
		again := append(make([]byte, Header), found.Raw...)
		found.Seal(again, 0)
		require.Equal(t, b[:size], again)
	})
}

// TestReadAfterClose: a walk that goes on while the store is closed says so.
func TestReadAfterClose(t *testing.T) {
	t.Parallel()
	f, err := Create(vfs.OS(t.TempDir()), 1)
	require.NoError(t, err)
	require.NoError(t, f.CheckHeader())
	require.NoError(t, f.Close())
	require.ErrorIs(t, f.CheckHeader(), ErrClosed)
	require.ErrorIs(t, f.Read(make([]byte, 1), Extent{Size: 1}), ErrClosed)
}
