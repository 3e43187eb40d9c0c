package exact

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestPowerFailure simulates a power failure before each disk operation in turn. The Set must then
// have a prefix of the added URLs, with everything that a Sync acknowledged, and must be usable.
func TestPowerFailure(t *testing.T) {
	const urls = 80
	for _, o := range []Options{{Memory: tiny}, {Memory: small}} {
		// play adds URLs until it fails, and returns how many were synced and added by then.
		play := func(fs *vfs.Mem) (synced, added int) {
			s, err := open(fs, o)
			if err != nil {
				return 0, 0
			}
			s.stepPages, s.segmentSize = 1, 800
			for ; added < urls; added++ {
				if _, err := s.Add(page(added)); err != nil {
					return synced, added
				}
				if added%9 == 0 {
					if s.Sync() != nil {
						return synced, added + 1
					}
					synced = added + 1
				}
			}
			return synced, added
		}
		whole := vfs.NewMem()
		_, added := play(whole)
		require.Equal(t, urls, added)
		for step := 1; step <= whole.Steps(); step++ {
			fs := vfs.NewMem()
			fs.FailAt(step, vfs.ErrPower)
			synced, added := play(fs)
			s, err := open(fs.Crash(rand.New(rand.NewPCG(uint64(step), 0))), o)
			require.NoError(t, err, "step %d", step)
			got := entriesFrom(t, s, 0)
			require.GreaterOrEqual(t, len(got), synced, "step %d", step)
			require.LessOrEqual(t, len(got), added+1, "step %d", step) // one in flight
			for i := range urls {
				isNew, err := s.Add(page(i))
				require.NoError(t, err)
				require.Equal(t, i >= len(got), isNew, "step %d, URL %d", step, i)
			}
			require.Len(t, entriesFrom(t, s, 0), urls)
		}
	}
}

// TestMergesSurvivePowerFailures does the same for deferred URLs.
func TestMergesSurvivePowerFailures(t *testing.T) {
	o := Options{Memory: tiny}
	play := func(fs *vfs.Mem) (merged int) {
		s, err := open(fs, o)
		for round := 0; err == nil && round < 6; round++ {
			for i := 0; err == nil && i < 10*round; i++ {
				err = s.Defer(page(i), []byte("data of "+page(i)))
			}
			if err == nil {
				if err = s.Merge(); err == nil {
					merged = 10 * round
				}
			}
		}
		return merged
	}
	whole := vfs.NewMem()
	require.Equal(t, 50, play(whole))
	for step := 1; step <= whole.Steps(); step++ {
		fs := vfs.NewMem()
		fs.FailAt(step, vfs.ErrPower)
		merged := play(fs)
		s, err := open(fs.Crash(rand.New(rand.NewPCG(uint64(step), 0))), o)
		require.NoError(t, err, "step %d", step)
		got := entriesFrom(t, s, 0)
		require.GreaterOrEqual(t, len(got), merged, "step %d", step)
		for i, url := range got {
			require.Equal(t, page(i), url, "step %d", step)
		}
	}
}

// TestManifestOfAKilledProcessIsSynced kills a process between the last two steps of a commit: the
// new manifest is visible, but not durable. The next process must make it durable.
func TestManifestOfAKilledProcessIsSynced(t *testing.T) {
	whole := vfs.NewMem()
	s := mustOpen(t, whole, Options{Memory: small})
	add(t, s, "a", "b")
	require.NoError(t, s.Trim(1))
	for seed := range uint64(20) {
		fs := vfs.NewMem()
		s := mustOpen(t, fs, Options{Memory: small})
		add(t, s, "a", "b")
		fs.FailAt(whole.Steps(), errors.New("killed"))
		require.ErrorIs(t, s.Trim(1), ErrFailed)
		kill(t, s)
		s = mustOpen(t, fs, Options{Memory: small})
		require.NoError(t, s.Sync())
		s = mustOpen(t, fs.Crash(rand.New(rand.NewPCG(seed, 0))), Options{Memory: small})
		require.EqualValues(t, 1, s.Stats().Trimmed)
		require.Equal(t, []string{"b"}, entriesFrom(t, s, 1))
	}
}

// TestFailuresLeaveNoFiles makes each disk operation fail once, as a full disk does. Files of a
// failed operation must be removed, or each retry would find less space.
func TestFailuresLeaveNoFiles(t *testing.T) {
	for failing := 1; ; failing++ {
		fs := vfs.NewMem()
		s := mustOpen(t, fs, Options{Memory: tiny})
		fs.FailAt(fs.Steps()+failing, errFull)
		for i := 0; i < 100 && s.failed == nil; i++ {
			if _, err := s.Add(page(i)); err != nil {
				i--
			}
		}
		last := fs.Steps()
		kill(t, s)
		fs.FailAt(0, nil)
		s, err := open(fs, Options{Memory: tiny})
		require.NoError(t, err)
		for i := range 100 {
			_, err := s.Add(page(i))
			require.NoError(t, err)
		}
		require.Len(t, entriesFrom(t, s, 0), 100)
		require.NoError(t, s.Close())
		names, _ := fs.List()
		require.LessOrEqual(t, len(names), 2+len(s.older)+1, "MANIFEST, index and segments: %q", names)
		if failing > last {
			return
		}
	}
}

// TestFailedReadsCanBeRetried makes each read fail once. The error must not be reported as
// corruption, and a retry must succeed.
func TestFailedReadsCanBeRetried(t *testing.T) {
	again := func(try func() error) {
		if err := try(); err != nil {
			require.ErrorIs(t, err, errFull)
			require.NotErrorIs(t, err, ErrCorrupt)
			require.NoError(t, try())
		}
	}
	for read := int64(1); ; read++ {
		fs := newFaultyFS()
		fs.failAt = read
		s := mustOpen(t, fs, Options{Memory: tiny})
		for i := range 90 {
			again(func() error { _, err := s.Add(page(i * 7 % 60)); return err })
			again(func() error { return s.Defer(page(i*11%60), nil) })
			if i%40 == 39 {
				again(s.Merge)
				require.NoError(t, s.Close())
				again(func() (err error) { s, err = open(fs, Options{Memory: tiny}); return err })
				again(func() error {
					for _, err := range s.Entries(0) {
						if err != nil {
							return err
						}
					}
					return nil
				})
			}
		}
		again(s.Merge)
		reads := fs.reads.Load()
		fs.failAt = 0
		require.Len(t, entriesFrom(t, s, 0), 60, "read %d", read)
		if read > reads {
			return
		}
	}
}

// childEnv is the environment variable with the directory of the process that TestKill kills.
const childEnv = "SPINNERET_EXACT_CHILD"

// TestMain is the child if childEnv is set: it adds URLs from the first on, some of which earlier
// children have added, and prints the number of acknowledged URLs.
func TestMain(m *testing.M) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := open(vfs.OS(dir), Options{Memory: small})
	for i := 0; err == nil; i++ {
		_, err = s.Add(page(i))
		os.Stdout.WriteString(strconv.Itoa(i+1) + "\n")
	}
	os.Stdout.WriteString(err.Error() + "\n")
	os.Exit(1)
}

// TestKill repeatedly kills a process that adds URLs without Sync. The URLs that it acknowledged on
// its output must be present, once and in order.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	best := 0
	for range 4 {
		best = max(best, killOnce(t, dir, best+1+random.IntN(1000)))
		s, err := Open(dir, Options{})
		require.NoError(t, err)
		got := entriesFrom(t, s, 0)
		require.NoError(t, s.Close())
		require.GreaterOrEqual(t, len(got), best, "%d URLs were acknowledged", best)
		for i, url := range got {
			require.Equal(t, page(i), url)
		}
	}
}

// killOnce kills the child after it acknowledged the given number of URLs, and returns how many it
// acknowledged in total.
func killOnce(t *testing.T, dir string, urls int) (acknowledged int) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	killed := false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		acknowledged, err = strconv.Atoi(strings.TrimSpace(lines.Text()))
		require.NoError(t, err, lines.Text())
		if acknowledged >= urls && !killed {
			killed = true
			require.NoError(t, child.Process.Kill())
		}
	}
	require.Error(t, child.Wait())
	return acknowledged
}
