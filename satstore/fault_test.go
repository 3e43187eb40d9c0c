package satstore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestFullDisk lets the disk get full in the midst of random histories. The store then refuses
// changes, still shows everything, and goes on as if nothing had been once there is room and Sync
// was called.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	full, ran := 0, 0
	for _, name := range []string{"full", "flat", "large", "nolog", "basic", "naive", "roomy"} {
		for seed := range *rounds {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				p := newPlayer(t, optionSets[name], seed)
				ran++
				for range 5 {
					p.fs.SetSpace(p.fs.Used() + int64(p.random.IntN(20_000)))
					var err error
					for i := 0; err == nil && i < 200; i++ {
						err = p.play()
					}
					p.catchUp()
					if err != nil {
						full++
						require.ErrorIs(t, err, ErrReadOnly)
						require.ErrorIs(t, err, syscall.ENOSPC)
						require.Equal(t, p.m.contents(), contents(t, p.s))
						_, err = p.s.Add("https://a.test/more", 0, nil)
						require.ErrorIs(t, err, ErrReadOnly)
					}
					p.fs.SetSpace(-1)
					require.NoError(t, p.s.Sync())
					p.synced()
					p.check()
					p.openCopy(full)
				}
				p.reopen()
				p.check()
			})
		}
	}
	if ran > 1 { // and not one of them by its name
		require.NotZero(t, full)
	}
}

// catchUp lets the model know of an Advance that failed after it had begun the slot.
func (p *player) catchUp() {
	if p.s.Now() > p.m.now {
		p.m.now = p.s.Now()
		p.done()
	}
}

// openCopy opens what is on disk now, on a disk that has no room for a checkpoint if full is odd.
func (p *player) openCopy(full int) {
	p.t.Helper()
	disk := p.fs.Clone()
	if full%2 == 1 {
		disk.SetSpace(disk.Used())
	}
	s := mustOpen(p.t, disk, p.o)
	require.Equal(p.t, p.m.contents(), contents(p.t, s))
	if full%2 == 1 {
		_, err := s.Add("https://a.test/more", 0, nil)
		require.ErrorIs(p.t, err, ErrReadOnly)
		disk.SetSpace(-1)
		require.NoError(p.t, s.Sync())
	}
	_, err := s.Add("https://a.test/more", 0, nil)
	require.NoError(p.t, err)
	require.NoError(p.t, s.Close())
}

// filled returns a store with records in all sorts of places, and what it holds. It is closed, or
// left with a log as after a crash.
func filled(t testing.TB, o Options, closed bool) (*vfs.Mem, Options, map[string]string) {
	p := newPlayer(t, o, 3)
	for range 300 {
		require.NoError(t, p.play())
	}
	require.NoError(t, p.s.checkpointNow())
	for range 30 {
		require.NoError(t, p.play())
	}
	require.NoError(t, p.s.Sync())
	want := contents(t, p.s)
	if closed {
		require.NoError(t, p.s.Close())
	}
	return p.fs.Clone(), p.o, want
}

// checkpointNow writes a checkpoint, as Backup does.
func (s *Store) checkpointNow() error {
	s.lockAll()
	defer s.unlockAll()
	if err := s.checkpoint(); err != nil {
		return s.fail(err)
	}
	return nil
}

// TestFlippedBits inverts bits of each file in turn. Each is noticed, with the file and the place,
// or changes nothing: then it was where nothing is.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{true, false} {
		for _, name := range []string{"full", "s2"} {
			disk, o, want := filled(t, Options{
				Mode: optionSets[name].Mode, Compression: optionSets[name].Compression,
				Buffer: 16 << 10,
			}, closed)
			random := rand.New(rand.NewPCG(1, 2))
			names, err := disk.List()
			require.NoError(t, err)
			for _, file := range names {
				noticed, size := 0, len(disk.Data(file))
				for range 10 {
					damaged := disk.Clone()
					if file != pendingName { // which would make up for the log's end
						require.NoError(t, damaged.Remove(pendingName))
					}
					at, bit := random.IntN(size), random.IntN(8)
					damaged.Flip(file, int64(at), bit)
					if notices(t, damaged, o, want) {
						noticed++
					}
				}
				t.Logf("%s closed=%v: %s: %d of 10 noticed", name, closed, file, noticed)
				if file != dataName && file != pendingName { // which have free room
					require.Greater(t, noticed, 1, file)
				}

			}
		}
	}
}

// notices reports whether a damaged store is refused or found to be damaged. If not, it must hold
// what is wanted; but changes at the end of a log may look like those that a crash cut off.
func notices(t *testing.T, disk *vfs.Mem, o Options, want map[string]string) bool {
	t.Helper()
	s, err := open(disk, o)
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		var where *CorruptError
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorAs(t, err, &where)
		require.NotEmpty(t, where.File)
		return true
	}
	got := contents(t, s)
	if !maps.Equal(want, got) {
		require.Positive(t, s.stats.Cut, "a flipped bit changed the contents, and nobody noticed")
		return true
	}
	return false
}

// TestNaiveGoesOn: a naive store whose page finds no room is read-only, and not broken for good.
func TestNaiveGoesOn(t *testing.T) {
	fs, o := vfs.NewMem(), small(Options{Mode: Naive, Buffer: 1 << 20})
	s := mustOpen(t, fs, o)
	fs.SetSpace(fs.Used() + 20_000)
	var err error
	for i := 0; err == nil; i++ {
		_, err = s.Add(fmt.Sprint(i), 1000+int64(i%30), make([]byte, 100))
	}
	require.ErrorIs(t, err, ErrReadOnly)
	want := contents(t, s)
	fs.SetSpace(-1)
	require.NoError(t, s.Sync())
	require.Equal(t, want, contents(t, mustOpen(t, fs.Clone(), o)))
	require.NoError(t, s.Check())
	require.NoError(t, s.Close())
}
