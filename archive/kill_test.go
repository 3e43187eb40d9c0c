package archive

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var kills = flag.Int("kills", 6, "how often TestKilledErasure kills its processes")

// killRole is an environment variable that makes the test binary play a part, with crashDir, until it is
// killed.
const killRole = "SPINNERET_ARCHIVE_KILL_ROLE"

// killText is the body of the version of a time, so that everybody knows a wrong one.
func killText(at time.Time) string {
	return strings.Repeat(fmt.Sprint("body ", at.UnixMicro()%11, " "), 200)
}

// eraseForever appends pages of two hosts, and erases those of one again and again. It prints each step.
func eraseForever(dir string) {
	a, err := Open(dir, Options{MaxFile: 30_000, Share: true, SyncEvery: -1, Level: 1, Compressors: 2})
	must(err)
	var appended atomic.Int64
	for _, host := range []string{"kept", "erased"} {
		go func() {
			for i := 0; ; i++ {
				at := time.Now().UTC().Truncate(time.Microsecond)
				c := page(fmt.Sprintf("http://%s.test/%d", host, i%40), killText(at))
				c.Time = at
				fmt.Println("appending", c.URL, at.UnixMicro())
				_, err := a.Append(c)
				must(err)
				fmt.Println("appended", c.URL, at.UnixMicro())
				appended.Add(1)
				if host == "kept" && i%30 == 7 {
					must(a.index.write(false))
				}
			}
		}()
	}
	for round := int64(1); ; round++ {
		for appended.Load() < round*25 {
			time.Sleep(time.Millisecond)
		}
		to := time.Now().UTC().Truncate(time.Microsecond)
		fmt.Println("erasing", "-", to.UnixMicro())
		_, err := a.Erase(context.Background(), Selection{Host: "erased.test", To: to}, "asked for")
		must(err)
		fmt.Println("erased", "-", to.UnixMicro())
	}
}

// readForever reads all versions beside a writer.
func readForever(dir string) {
	a, err := Open(dir, Options{ReadOnly: true})
	must(err)
	for {
		for v, err := range a.All() {
			must(err)
			text, err := a.Body(v)
			if errors.Is(err, ErrNotFound) && strings.HasPrefix(v.URL, "http://erased.test/") {
				continue // since then
			}
			must(err)
			if string(text) != killText(v.Time) {
				must(fmt.Errorf("%s %v has the body of another version", v.URL, v.Time))
			}
		}
		fmt.Println("read all", 0)
	}
}

func must(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// killed starts a process that plays a part, calls line for each of the lines it prints, and kills it when
// line returns false.
func killed(t *testing.T, role, dir string, line func(what, url string, at int64) bool) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, killRole+"="+role)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	alive := true
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var what, url string
		var at int64
		_, err := fmt.Sscan(lines.Text(), &what, &url, &at)
		require.NoError(t, err, "%s: %s", role, lines.Text())
		if !line(what, url, at) && alive {
			alive = false
			require.NoError(t, cmd.Process.Kill())
		}
	}
	_, _ = io.Copy(io.Discard, stdout)
	require.Error(t, cmd.Wait(), "it was killed")
}

// What a killed process may have left of a version.
const (
	unsure = iota
	present
	absent
)

// survivors is what must be in the archive, by URL and time.
type survivors struct {
	versions map[string]int
	doomed   []string // while an erasure goes on
	to       int64    // of the last erasure
}

func (s *survivors) line(what, url string, at int64) {
	key := fmt.Sprint(url, " ", at)
	selected := strings.HasPrefix(url, "http://erased.test/") && at < s.to
	switch what {
	case "appending":
		s.versions[key] = unsure
	case "appended":
		if !selected { // else it was appended while others were erased
			s.versions[key] = present
		}
	case "erasing":
		s.to, s.doomed = at, nil
		for key, state := range s.versions {
			if state == present && strings.HasPrefix(key, "http://erased.test/") {
				s.doomed = append(s.doomed, key)
				s.versions[key] = unsure
			}
		}
	case "erased":
		for _, key := range s.doomed {
			s.versions[key] = absent
		}
		s.doomed = nil
	}
}

// A process that appends and erases is killed with kill -9, and so is one that reads beside it. What was
// acknowledged is there, what was erased is not, and the next process goes on.
func TestKilledErasure(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := t.TempDir()
	s := &survivors{versions: map[string]int{}}
	r := rand.New(rand.NewPCG(uint64(*kills), 0))
	for range *kills {
		begun, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			<-begun
			reads := 1 + r.IntN(3)
			killed(t, "reader", dir, func(string, string, int64) bool { reads--; return reads > 0 })
		}()
		limit := 100 + rand.IntN(500)
		n := 0
		killed(t, "eraser", dir, func(what, url string, at int64) bool {
			if n++; n == 50 {
				close(begun)
			}
			s.line(what, url, at)
			return n < limit
		})
		<-ended
		s.check(t, dir)
	}
}

func (s *survivors) check(t *testing.T, dir string) {
	t.Helper()
	a, err := Open(dir, Options{Share: true})
	require.NoError(t, err)
	found := map[string]bool{}
	for v, err := range a.All() {
		require.NoError(t, err)
		key := fmt.Sprint(v.URL, " ", v.Time.UnixMicro())
		state, known := s.versions[key]
		require.True(t, known, "%s was never appended", key)
		require.False(t, found[key], "%s is there twice", key)
		require.NotEqual(t, absent, state, "%s was erased", key)
		text, err := a.Body(v)
		require.NoError(t, err, "%s %+v state %d to %d", key, v, state, s.to)
		require.Equal(t, killText(v.Time), string(text), key)
		found[key] = true
	}
	for key, state := range s.versions {
		require.True(t, state != present || found[key], "%s is lost", key)
		s.versions[key] = absent // or it is here, and stays
		if found[key] {
			s.versions[key] = present
		}
	}
	s.doomed = nil
	_, err = a.Verify(t.Context(), func(f Fault) { t.Error(f) })
	require.NoError(t, err)
	require.NoError(t, a.Close())
}
