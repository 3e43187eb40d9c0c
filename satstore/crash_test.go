package satstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// recovered finds the state that a store recovered. It must be one since the last Sync.
func (p *player) recovered() {
	p.t.Helper()
	got := contents(p.t, p.s)
	for _, m := range slices.Backward(p.past) {
		if reflect.DeepEqual(m.contents(), got) {
			p.m, p.out, p.erased = m, map[string]*held{}, nil
			p.synced()
			return
		}
	}
	p.t.Errorf("none of %d states has these records", len(p.past))
	require.Equal(p.t, p.past[0].contents(), got)
	require.Equal(p.t, p.m.contents(), got)
}

// TestPowerFailure cuts the power during random histories, again and again. The store must recover
// the state at some moment since the last Sync, with no record lost, duplicated or mixed.
func TestPowerFailure(t *testing.T) {
	t.Parallel()
	for name, o := range optionSets {
		for seed := range *rounds {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				p := newPlayer(t, o, seed)
				for range 3 {
					p.fs.FailAt(p.fs.Steps()+1+p.random.IntN(400), vfs.ErrPower)
					var err error
					for i := 0; err == nil && i < 300; i++ {
						err = p.play()
					}
					p.crash()
				}
			})
		}
	}
}

// crash cuts the power, perhaps only after the process was killed, and reopens the store, with more
// failures during Open.
func (p *player) crash() {
	if p.unsure != nil { // both states are possible
		p.unsure()
		p.unsure = nil
	}
	kill := p.random.IntN(2) == 0 // the process first
	for tries := 0; ; tries++ {
		if tries == 0 && kill {
			p.fs = p.fs.Clone()
		} else {
			p.fs = p.fs.Crash(rand.New(rand.NewPCG(p.random.Uint64(), 0)))
		}
		if tries < 3 {
			p.fs.FailAt(1+p.random.IntN(30), vfs.ErrPower)
		}
		s, err := open(p.fs, p.o)
		if err == nil && s.broken {
			err = vfs.ErrPower
		}
		if err == nil {
			p.s = s
			break
		}
		require.ErrorIs(p.t, err, vfs.ErrPower)
	}
	p.fs.FailAt(0, nil)
	require.NoError(p.t, p.s.Sync())
	p.recovered()
	require.NoError(p.t, p.s.Check())
}

// TestFailedSteps makes single steps of random histories fail, as a bad disk does. A later Sync
// that succeeds acknowledges everything; if none does, the changes acknowledged earlier are
// recovered.
func TestFailedSteps(t *testing.T) {
	t.Parallel()
	bad := errors.New("bad disk")
	resumed, broken, ran := 0, 0, 0
	for name, o := range optionSets {
		for seed := range *rounds {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				p := newPlayer(t, o, seed)
				ran++
				for range 10 {
					p.fs.FailAt(p.fs.Steps()+1+p.random.IntN(60), bad)
					var err error
					for i := 0; err == nil && i < 100; i++ {
						err = p.play()
					}
					if err != nil {
						require.ErrorIs(t, err, bad)
						if err = p.s.Sync(); err == nil {
							resumed++
							p.settle()
							p.synced()
							p.check()
						} else {
							broken++
							require.ErrorIs(t, err, ErrReadOnly)
						}
					}
					p.crash()
				}
			})
		}
	}
	if ran > 1 { // not a single one selected by name
		require.NotZero(t, resumed)
		require.NotZero(t, broken)
	}
}

// TestFullDisk fills the disk during random histories. The store then refuses changes, can still be
// read, and continues normally once there is space and Sync was called.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	full, ran := 0, 0
	for name, o := range optionSets {
		for seed := range *rounds {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				p := newPlayer(t, o, seed)
				ran++
				for range 5 {
					p.fs.SetSpace(p.fs.Used() + int64(p.random.IntN(20_000)))
					var err error
					for i := 0; err == nil && i < 200; i++ {
						err = p.play()
					}
					if err != nil {
						full++
						require.ErrorIs(t, err, ErrReadOnly)
						require.ErrorIs(t, err, syscall.ENOSPC)
						p.settle()
						require.Equal(t, p.m.contents(), contents(t, p.s))
						_, err = p.s.Add("https://a.test/more", at(0), nil)
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
	if ran > 1 { // not a single one selected by name
		require.NotZero(t, full)
	}
}

// openCopy opens a copy of the disk, which has no space for a checkpoint if full is odd.
func (p *player) openCopy(full int) {
	p.t.Helper()
	disk := p.fs.Clone()
	if full%2 == 1 {
		disk.SetSpace(disk.Used())
	}
	s := mustOpen(p.t, disk, p.o)
	require.Equal(p.t, p.m.contents(), contents(p.t, s))
	if full%2 == 1 {
		_, err := s.Add("https://a.test/more", at(0), nil)
		require.ErrorIs(p.t, err, ErrReadOnly)
		disk.SetSpace(-1)
		require.NoError(p.t, s.Sync())
	}
	_, err := s.Add("https://a.test/more", at(0), nil)
	require.NoError(p.t, err)
	require.NoError(p.t, s.Close())
}

// TestPowerFailureAfterAKill: a process is killed at each step of Close, and the power fails at each
// step of the next Open. That finds names which are not durable yet, perhaps that of a new checkpoint.
func TestPowerFailureAfterAKill(t *testing.T) {
	t.Parallel()
	o := small(Options{Buffer: 64 << 10})
	for killAt, more := 1, true; more; killAt++ {
		fs := vfs.NewMem()
		s := mustOpen(t, fs, o)
		for i := range 20 {
			mustAdd(t, s, fmt.Sprint(i), 1002, "x")
		}
		require.NoError(t, s.Sync())
		want := contents(t, s)
		last := fs.Steps() + killAt
		fs.FailAt(last, vfs.ErrPower)
		_ = s.Close()
		more = fs.Steps() >= last
		for failAt := 1; ; failAt++ {
			killed := fs.Clone()
			killed.FailAt(failAt, vfs.ErrPower)
			_, err := open(killed, o)
			for seed := range uint64(5) {
				found := killed.Crash(rand.New(rand.NewPCG(seed, uint64(failAt))))
				s, err := open(found, o)
				require.NoError(t, err, "a kill at step %d, then power failure at %d", killAt, failAt)
				require.Equal(t, want, contents(t, s))
			}
			if killed.Steps() < failAt {
				require.NoError(t, err)
				break
			}
		}
	}
}
