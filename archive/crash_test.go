package archive

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// crashDir, in the environment, makes the test binary a crawler that appends until it is killed.
const crashDir = "SPINNERET_ARCHIVE_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		appendForEver(dir)
	}
	os.Exit(m.Run())
}

// appendForEver prints a line for each capture that was acknowledged.
func appendForEver(dir string) {
	a, err := Open(dir, Options{MaxFile: 200_000, Level: 1, SyncEvery: -1})
	if err != nil {
		panic(err)
	}
	a.buffered = 20_000 // some captures are written in many small steps
	for g := range 4 {
		go func() {
			for i := 0; ; i++ {
				url := fmt.Sprintf("http://%d.test/%d", g, i)
				loc, err := a.Append(crashPage(url, i))
				if err != nil {
					panic(err)
				}
				fmt.Printf("%s %s %d %d\n", url, loc.File, loc.Offset, loc.Length)
			}
		}()
	}
	select {}
}

// crashPage compresses badly, so that there is much to write.
func crashPage(url string, seed int) Capture {
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	body := make([]byte, r.IntN(30_000))
	for i := range body {
		body[i] = byte(r.Uint32())
	}
	c := page(url, string(body))
	c.Time = time.Now()
	return c
}

// A crawler is killed with kill -9 in the midst of it: whatever it was told to be kept is there.
func TestKilledProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for round := range 4 {
		t.Run(fmt.Sprintf("seed=%d", round), func(t *testing.T) {
			dir := t.TempDir()
			lines := 1 + rand.New(rand.NewPCG(uint64(round), 0)).IntN(300)
			acknowledged := killAfter(t, dir, lines)
			requireSurvivors(t, dir, acknowledged)

			// The next process leaves the files of the dead one alone.
			before := readDir(t, dir)
			a, err := Open(dir, Options{})
			require.NoError(t, err)
			_, err = a.Append(page("http://a.test/next", ""))
			require.NoError(t, err)
			require.NoError(t, a.Close())
			after := readDir(t, dir)
			require.Len(t, after, len(before)+1)
			for name, data := range before {
				require.Equal(t, data, after[name])
			}
		})
	}
}

// killAfter runs a crawler until it has printed so many lines, kills it, and returns all that it
// has printed by then.
func killAfter(t *testing.T, dir string, lines int) map[string]Location {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	acknowledged := map[string]Location{}
	for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
		var url string
		var loc Location
		_, err := fmt.Sscan(scanner.Text(), &url, &loc.File, &loc.Offset, &loc.Length)
		require.NoError(t, err, scanner.Text())
		acknowledged[url] = loc
		if len(acknowledged) == lines {
			require.NoError(t, cmd.Process.Kill())
		}
	}
	require.Error(t, cmd.Wait(), "it was killed")
	require.GreaterOrEqual(t, len(acknowledged), lines)
	return acknowledged
}

// requireSurvivors holds that every acknowledged capture is where it was said to be, and that at
// most one file ends in the middle of a capture, and shows it by its name.
func requireSurvivors(t *testing.T, dir string, acknowledged map[string]Location) {
	found, open := 0, 0
	for name, data := range readDir(t, dir) {
		captures, err := readCaptures(data)
		if strings.HasSuffix(name, unfinished) {
			open++
			if err != nil {
				t.Log("torn:", err)
			}
		} else {
			require.NoError(t, err, name)
		}
		for _, c := range captures {
			loc, wanted := acknowledged[c.fields["WARC-Target-URI"]]
			if !wanted {
				continue // written, but killed before it could be told
			}
			file := strings.TrimSuffix(name, unfinished)
			require.Equal(t, loc, Location{file, c.offset, c.length})
			found++
		}
	}
	require.Equal(t, len(acknowledged), found)
	require.LessOrEqual(t, open, 1)
}

func readDir(t *testing.T, dir string) map[string][]byte {
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	contents := map[string][]byte{}
	for _, path := range names {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		contents[filepath.Base(path)] = data
	}
	return contents
}

// Two archives in one directory know nothing of each other, and need not.
func TestTwoArchivesShareADirectory(t *testing.T) {
	dir := t.TempDir()
	var archives []*Archive
	for range 2 {
		a, err := Open(dir, Options{MaxFile: 2000, Level: 1})
		require.NoError(t, err)
		archives = append(archives, a)
	}
	var wg sync.WaitGroup
	for n, a := range archives {
		wg.Go(func() {
			for i := range 20 {
				_, err := a.Append(page(fmt.Sprintf("http://%d.test/%d", n, i), "x"))
				if err != nil {
					t.Error(err)
				}
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var urls []string
	for name, data := range readDir(t, dir) {
		captures, err := readCaptures(data)
		require.NoError(t, err, name)
		for _, c := range captures {
			urls = append(urls, c.fields["WARC-Target-URI"])
		}
	}
	require.Len(t, urls, 40)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(urls))), 40)
}
