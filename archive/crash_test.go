package archive

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// crashDir is an environment variable that makes the test binary append until it is killed.
const crashDir = "SPINNERET_ARCHIVE_CRASH_DIR"

// crashImports makes that process import the files of a directory instead.
const crashImports = "SPINNERET_ARCHIVE_CRASH_IMPORTS"

func TestMain(m *testing.M) {
	switch dir := os.Getenv(crashDir); {
	case dir == "":
	case os.Getenv(crashImports) != "":
		importForever(dir)
	case os.Getenv(killRole) == "eraser":
		eraseForever(dir)
	case os.Getenv(killRole) == "reader":
		readForever(dir)
	default:
		appendForever(dir)
	}
	if os.Getenv(scanChild) != "" {
		serveScan()
		return
	}
	// A file system in memory avoids hundreds of disk syncs. None of these tests needs them.
	if os.Getenv("TMPDIR") == "" {
		if f, err := os.CreateTemp("/dev/shm", "spinneret-*"); err == nil {
			_ = errors.Join(f.Close(), os.Remove(f.Name()), os.Setenv("TMPDIR", "/dev/shm"))
		}
	}
	os.Exit(m.Run())
}

// appendForever prints a line for each acknowledged capture.
func appendForever(dir string) {
	a, err := Open(dir, Options{MaxFile: 200_000, Level: 1, SyncEvery: -1})
	if err != nil {
		panic(err)
	}
	a.files.buffered = 20_000 // some captures are written in many small steps
	for g := range 4 {
		go func() {
			for i := 0; ; i++ {
				url := fmt.Sprintf("http://%d.test/%d", g, i)
				loc, err := a.Append(crashPage(url, i))
				if err != nil {
					panic(err)
				}
				fmt.Printf("%s %s %d %d\n", url, loc.File, loc.Offset, loc.Length)
				if g == 0 && i%5 == 4 { // so that a kill may interrupt a write of the index
					if err := a.Sync(); err != nil {
						panic(err)
					}
				}
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

// A crawler is killed with kill -9 during appends. Every acknowledged capture survives.
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

			requireRecovered(t, dir, acknowledged)
		})
	}
}

// requireRecovered opens the archive of a killed process. It requires that the files have every
// acknowledged capture, and that exactly the captures in the files are found by URL and can be
// read.
func requireRecovered(t *testing.T, dir string, acknowledged map[string]Location) {
	a, err := Open(dir, Options{})
	require.NoError(t, err)
	inFiles := map[string]Location{}
	for name, data := range readDir(t, dir) {
		if !isWARC(name) {
			continue
		}
		require.NotContains(t, name, unfinished)
		captures, err := readCaptures(data)
		require.NoError(t, err, name)
		for _, c := range captures {
			inFiles[c.fields["WARC-Target-URI"]] = Location{name, c.offset, c.length}
		}
	}
	for url, loc := range acknowledged {
		require.Equal(t, loc, inFiles[url])
	}
	for url, loc := range inFiles {
		v, err := a.At(url, time.Time{})
		require.NoError(t, err, url)
		require.Equal(t, loc, v.Location)
		versions, err := a.Versions(url)
		require.NoError(t, err)
		require.Len(t, versions, 1)
		rec, err := a.Read(loc)
		require.NoError(t, err)
		require.NoError(t, rec.Close(), "its digest is right")
	}
	require.NoError(t, a.Close())
	n := 0
	x := indexContents(t, dir)
	for range x {
		n++
	}
	require.Equal(t, len(inFiles), n, "entries")
}

// indexContents returns all index entries of a closed archive as they are on disk, but with names
// of files instead of their numbers, which depend on the order in which files were added.
func indexContents(t *testing.T, dir string) map[string]string {
	x := openTestIndex(t, vfs.OS(dir))
	contents := map[string]string{}
	for l, err := range x.scan(urlkey.All) {
		require.NoError(t, err)
		e := l.entry
		at := fmt.Sprintf("%q %d %s %d", l.url, e.time, x.name(e.file), e.offset)
		if e.content.length > 0 {
			at += " of " + x.name(e.content.file)
		}
		e.content.file = 0
		contents[at] = string(e.appendValue(nil))
	}
	require.NoError(t, x.close(false))
	return contents
}

// killAfter runs a crawler until it has printed that many lines, kills it, and returns all printed
// captures.
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

// requireSurvivors requires that every acknowledged capture is at its location, and that at most
// one file ends within a capture, and is named unfinished.
func requireSurvivors(t *testing.T, dir string, acknowledged map[string]Location) {
	found, open := 0, 0
	for name, data := range readDir(t, dir) {
		if !isWARC(name) {
			continue
		}
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
				continue // written, but not acknowledged before the kill
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

// Two concurrent processes would not see each other's captures.
func TestOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	a, err := Open(dir, Options{})
	require.NoError(t, err)
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, a.Close())
	a, err = Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, a.Close())
}

// TestCrashDuringFirstCapture cuts a file with one capture anywhere. An incomplete capture is
// removed, and no unfinished file is left behind.
func TestCrashDuringFirstCapture(t *testing.T) {
	dir := t.TempDir()
	a, err := Open(dir, Options{})
	require.NoError(t, err)
	loc, err := a.Append(page("http://a.test/", strings.Repeat("text ", 200)))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	whole, err := os.ReadFile(filepath.Join(dir, loc.File))
	require.NoError(t, err)

	for cut := 0; cut <= len(whole); cut += 7 {
		dir := t.TempDir()
		name := filepath.Join(dir, loc.File)
		require.NoError(t, os.WriteFile(name+unfinished, whole[:cut], 0o644))
		a, err := Open(dir, Options{})
		require.NoError(t, err)
		names, err := a.Files()
		require.NoError(t, err)
		require.NoError(t, a.Close())
		if int64(cut) < loc.Offset+loc.Length {
			require.NotContains(t, names, loc.File+unfinished, "cut at %d", cut)
			require.NoFileExists(t, name, "cut at %d", cut)
		} else {
			require.FileExists(t, name)
		}
	}
}
