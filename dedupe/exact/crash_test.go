package exact

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// history is what a crawler does: rounds of sightings, each ended by a merge.
func history(seed uint64, rounds int) [][]string {
	random := rand.New(rand.NewPCG(seed, 0))
	all := make([][]string, rounds)
	for i := range all {
		for range random.IntN(40) {
			all[i] = append(all[i], fmt.Sprint("https://a.test/", random.IntN(30*rounds)))
		}
	}
	return all
}

// firstSights returns the URLs of the rounds in the order of their first sight.
func firstSights(rounds [][]string) (urls []string) {
	met := map[string]bool{}
	for _, round := range rounds {
		for _, url := range round {
			if !met[url] {
				met[url] = true
				urls = append(urls, url)
			}
		}
	}
	return urls
}

// entriesOf returns the URLs of all entries, which must be numbered from 0.
func entriesOf(t testing.TB, s *Set) (urls []string) {
	t.Helper()
	for entry, err := range s.Entries(0) {
		require.NoError(t, err)
		require.EqualValues(t, len(urls), entry.Seq)
		require.Equal(t, "data of "+entry.URL, string(entry.Data))
		urls = append(urls, entry.URL)
	}
	return urls
}

// play adds rounds until one cannot be merged, and returns how many could.
func play(s *Set, rounds [][]string) int {
	for i, round := range rounds {
		for _, url := range round {
			if s.Add(url, []byte("data of "+url)) != nil {
				return i
			}
		}
		if s.Merge() != nil {
			return i
		}
	}
	return len(rounds)
}

// TestPowerFailure takes the power away before each step of a history in turn. What is found must
// be the state after the last merge that was acknowledged, or after the next one, and the history
// can go on from there to the same end.
func TestPowerFailure(t *testing.T) {
	for seed := range uint64(4) {
		opened := func(d *memDisk) (*Set, error) {
			s, err := open(d, Options{Memory: small, Wide: seed%2 == 1})
			if err == nil && seed >= 2 {
				s.pile.latest = make([]byte, 0, 200)
			}
			return s, err
		}
		rounds := history(seed, 7)
		whole := newMemDisk()
		s, err := opened(whole)
		require.NoError(t, err)
		require.Equal(t, len(rounds), play(s, rounds))
		for step := 1; step <= whole.steps; step++ {
			d := newMemDisk()
			d.failAt, d.failure = step, errPower
			merged := 0
			if s, err := opened(d); err == nil {
				merged = play(s, rounds)
			}
			random := rand.New(rand.NewPCG(seed, uint64(step)))
			s, err := opened(d.crash(random))
			require.NoError(t, err, "seed %d, step %d", seed, step)
			got := entriesOf(t, s)
			want := firstSights(rounds[:merged])
			if merged < len(rounds) && len(got) != len(want) {
				want = firstSights(rounds[:merged+1])
			}
			require.Equal(t, want, got, "seed %d, step %d", seed, step)
			require.Equal(t, len(rounds)-merged, play(s, rounds[merged:]))
			require.Equal(t, firstSights(rounds), entriesOf(t, s), "seed %d, step %d", seed, step)
		}
	}
}

// TestFailedStepsAreMadeGood lets each step of a history fail once, as a full disk does, and tries
// the merge again. Closing and opening must show the same, whatever the failure left on disk.
func TestFailedStepsAreMadeGood(t *testing.T) {
	broken := errors.New("disk full")
	rounds := history(7, 12)
	for step := 3; ; step++ { // the first steps make the Set
		d := newMemDisk()
		d.failAt, d.failure = step, broken
		s, err := open(d, Options{Memory: small})
		if err != nil {
			require.ErrorIs(t, err, broken)
			continue
		}
		for _, round := range rounds {
			for _, url := range round {
				require.NoError(t, s.Add(url, []byte("data of "+url)))
			}
			if err := s.Merge(); err != nil {
				require.ErrorIs(t, err, broken)
				require.NoError(t, s.Merge())
			}
		}
		require.Equal(t, firstSights(rounds), entriesOf(t, s), "step %d", step)
		require.NoError(t, s.Close())
		steps := d.steps
		d.failAt = 0
		s, err = open(d, Options{Memory: small})
		require.NoError(t, err)
		require.Equal(t, firstSights(rounds), entriesOf(t, s), "step %d", step)
		require.Equal(t, len(rounds), play(s, rounds))
		require.Equal(t, firstSights(rounds), entriesOf(t, s), "step %d", step)
		if step > steps {
			return
		}
	}
}

// TestFailedReadsAreMadeGood lets each read of a history fail once, in merges, in walks and when the
// Set is opened. No such error is taken for damage, and the next try shows all there is.
func TestFailedReadsAreMadeGood(t *testing.T) {
	broken := errors.New("cannot read")
	rounds := history(3, 10)
	again := func(try func() error) {
		if err := try(); err != nil {
			require.ErrorIs(t, err, broken)
			require.NotErrorIs(t, err, ErrCorrupt)
			require.NoError(t, try())
		}
	}
	for read := 1; ; read++ {
		d := newMemDisk()
		d.badRead, d.failure = read, broken
		s := mustOpenSmall(t, d, Options{Memory: small})
		for i, round := range rounds {
			for _, url := range round {
				again(func() error { return s.Add(url, []byte("data of "+url)) })
			}
			again(s.Merge)
			if i%4 == 3 {
				require.NoError(t, s.Close())
				again(func() (err error) { s, err = open(d, Options{Memory: small}); return err })
				shrink(s)
			}
			again(func() error {
				for _, err := range s.Entries(0) {
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		reads := d.reads
		d.badRead = 0
		require.Equal(t, firstSights(rounds), entriesOf(t, s), "read %d", read)
		if read > reads {
			return
		}
	}
}

// TestWhatAKilledProcessLeftLasts lets a process die between the two last steps of a merge: the new
// MANIFEST is there to be seen, but not to last. The next process finds nothing that is new, and its
// merge, too, is a promise.
func TestWhatAKilledProcessLeftLasts(t *testing.T) {
	whole := newMemDisk()
	s := mustOpen(t, whole, Options{Memory: small})
	add(t, s, "a", "b")
	require.NoError(t, s.Merge())

	for seed := range uint64(20) {
		d := newMemDisk()
		d.failAt, d.failure = whole.steps, errors.New("killed")
		s := mustOpen(t, d, Options{Memory: small})
		add(t, s, "a", "b")
		require.ErrorIs(t, s.Merge(), d.failure)
		s = mustOpen(t, d, Options{Memory: small})
		add(t, s, "a", "b")
		require.NoError(t, s.Merge())
		s = mustOpen(t, d.crash(rand.New(rand.NewPCG(seed, 0))), Options{Memory: small})
		require.Equal(t, []string{"a", "b"}, entriesOf(t, s))
	}
}

// TestFailedMergesLeaveNoFiles lets each step of a merge fail, as a full disk does. What was written
// for it must give its room back, or each further try would find less. It may stay only when the
// MANIFEST on disk may name it: if the renaming fails, or the sync behind it.
func TestFailedMergesLeaveNoFiles(t *testing.T) {
	left := 0
	for failing := 1; ; failing++ {
		d := newMemDisk()
		s := mustOpen(t, d, Options{Memory: small})
		add(t, s, "a")
		require.NoError(t, s.Merge())
		before, _ := d.list()
		add(t, s, "b")
		d.failAt, d.failure = d.steps+failing, errFull
		if s.Merge() == nil {
			require.Greater(t, failing, 8)
			break
		}
		delete(d.names, manifestTemp)
		if after, _ := d.list(); !slices.Equal(before, after) {
			left++
		}
		require.NoError(t, s.Merge())
		require.Equal(t, []string{"a", "b"}, entriesOf(t, s))
	}
	require.LessOrEqual(t, left, 2)
}

// childEnv names the directory for the process that TestKill kills.
const childEnv = "SPINNERET_EXACT_CHILD"

// killedRounds is more than the child has time for.
func killedRounds() [][]string { return history(99, 400) }

// TestMain is the child, if there is a directory for it.
func TestMain(m *testing.M) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := Open(dir, Options{})
	if err != nil {
		fmt.Println("cannot open:", err)
		os.Exit(1)
	}
	shrink(s)
	// Old rounds are met again, which changes nothing.
	for i, round := range killedRounds() {
		if play(s, [][]string{round}) != 1 {
			os.Exit(1)
		}
		fmt.Println(i + 1)
	}
}

// TestKill kills a process, again and again, that adds and merges. What it acknowledged on its
// output must be there, once, in order.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	rounds := killedRounds()
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	best := 0
	for range 4 {
		best = max(best, killOnce(t, dir, 1+random.IntN(25)))
		s, err := Open(dir, Options{})
		require.NoError(t, err)
		got := entriesOf(t, s)
		require.NoError(t, s.Close())
		// Of the round after those, all may be there or a part: Add merges, too, when it has no room.
		acknowledged, most := firstSights(rounds[:best]), firstSights(rounds[:best+1])
		require.GreaterOrEqual(t, len(got), len(acknowledged), "%d rounds were acknowledged", best)
		require.LessOrEqual(t, len(got), len(most), "%d rounds were acknowledged", best)
		require.Equal(t, most[:len(got)], got)
	}
}

// killOnce lets the child acknowledge so many rounds, kills it at the next chance, and returns how
// many it has acknowledged by then.
func killOnce(t *testing.T, dir string, rounds int) (acknowledged int) {
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
		if acknowledged >= rounds && !killed {
			killed = true
			require.NoError(t, child.Process.Kill())
		}
	}
	require.Error(t, child.Wait())
	return acknowledged
}
