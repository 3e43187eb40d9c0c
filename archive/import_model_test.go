package archive

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// world is an archive, files of other programs, and a model of both.
type world struct {
	t   *testing.T
	r   *rand.Rand
	dir string // of the archive
	out string // directory of foreign files
	a   *Archive

	own   map[string]string   // bodies of appended pages by URL
	files map[string][]string // bodies of foreign files by path; see foreignURL
	away  map[string]bool     // missing files
	known map[string]int      // number of indexed pages of each import
}

func newWorld(t *testing.T, seed uint64) *world {
	e := &world{t: t, r: rand.New(rand.NewPCG(seed, 21)), dir: t.TempDir(), out: t.TempDir(),
		own: map[string]string{}, files: map[string][]string{}, away: map[string]bool{},
		known: map[string]int{}}
	e.open()
	return e
}

func (e *world) open() {
	e.a = openDir(e.t, e.dir, Options{MaxFile: 3000})
	commitAt(e.a, 6)
}

// foreignURL is the URL of page i of a foreign file.
func foreignURL(path string, i int) string {
	return fmt.Sprintf("http://foreign.test/%s/%d", filepath.Base(path), i)
}

// grow appends some pages to a foreign file, which may be a new one.
func (e *world) grow(path string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(e.t, err)
	enc, err := warc.NewEncoder(warc.EncoderOptions{Level: 1})
	require.NoError(e.t, err)
	for range 1 + e.r.IntN(4) {
		i := len(e.files[path])
		body := fmt.Sprintf("page %d of %s", i, filepath.Base(path))
		e.files[path] = append(e.files[path], body)
		_, _, err := enc.Encode(f, &warc.Head{Type: "resource", Date: someTime,
			ContentType: "text/plain", TargetURI: foreignURL(path, i)}, []byte(body))
		require.NoError(e.t, err)
	}
	require.NoError(e.t, f.Close())
}

// somePath returns a file that is not missing, and may be new.
func (e *world) somePath() string {
	paths := slices.DeleteFunc(slices.Sorted(maps.Keys(e.files)), func(path string) bool {
		return e.away[path]
	})
	if len(paths) < 4 || e.r.IntN(6) == 0 {
		path := filepath.Join(e.out, fmt.Sprintf("%d.warc.gz", len(e.files)))
		e.grow(path)
		return path
	}
	return paths[e.r.IntN(len(paths))]
}

// step does one random operation on the archive or on foreign files.
func (e *world) step() {
	switch e.r.IntN(10) {
	case 0, 1:
		path := e.somePath()
		_, err := e.a.Import(path)
		require.NoError(e.t, err)
		e.known[path] = len(e.files[path])
	case 2:
		e.grow(e.somePath())
	case 3: // a file goes missing
		path := e.somePath()
		e.away[path] = true
		require.NoError(e.t, os.Rename(path, path+".away"))
	case 4: // a file comes back
		for path := range e.away {
			delete(e.away, path)
			require.NoError(e.t, os.Rename(path+".away", path))
			break
		}
	case 5:
		require.NoError(e.t, e.a.Close())
		e.open()
		e.recovered()
	case 6:
		e.repair()
	default:
		url := fmt.Sprintf("http://own.test/%d", len(e.own))
		e.own[url] = "body of " + url
		_, err := e.a.Append(visit{url, someTime, 200, e.own[url]}.capture())
		require.NoError(e.t, err)
	}
}

// recovered updates the model after opening an archive, which indexes new pages of all imports that
// are not missing.
func (e *world) recovered() {
	for path := range e.known {
		if !e.away[path] {
			e.known[path] = len(e.files[path])
		}
	}
}

func (e *world) repair() {
	require.NoError(e.t, e.a.Close())
	repaired, err := Repair(e.dir, Options{})
	require.NoError(e.t, err)
	require.Equal(e.t, e.missing(), repaired.Missing)
	for path := range e.known {
		if e.away[path] {
			e.known[path] = 0 // but it is still listed
		}
	}
	e.open()
	e.recovered()
}

func (e *world) missing() (paths []string) {
	for path := range e.known {
		if e.away[path] {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// check requires that the archive has the pages of the model, can read them, and reports missing
// files.
func (e *world) check() {
	t := e.t
	require.Equal(t, e.missing(), e.a.Missing())
	entries, lost := len(e.own), 0
	for url, want := range e.own {
		v, err := e.a.At(url, time.Time{})
		require.NoError(t, err)
		require.Equal(t, want, body(t, e.a, v))
	}
	for path, bodies := range e.files {
		entries += e.known[path]
		for i, want := range bodies {
			v, err := e.a.At(foreignURL(path, i), time.Time{})
			if i >= e.known[path] {
				require.ErrorIs(t, err, ErrNotFound)
				continue
			}
			require.NoError(t, err)
			rec, err := e.a.Read(v.Content)
			if e.away[path] {
				require.ErrorIs(t, err, os.ErrNotExist)
				lost++
				continue
			}
			require.NoError(t, err)
			text := make([]byte, len(want))
			_, err = rec.Read(text)
			require.NoError(t, err)
			require.Equal(t, want, string(text))
			require.NoError(t, rec.Close())
		}
	}
	faults, checked := verify(t, e.a)
	require.EqualValues(t, entries, checked.Versions)
	require.Len(t, faults, lost+len(e.missing()), "each missing page, and each missing file")
	for _, f := range faults {
		require.ErrorIs(t, f.Err, os.ErrNotExist)
		require.True(t, e.away[f.File])
	}
}

// Imports grow, go missing and come back at random, with repairs in between.
func TestImportsMatchModel(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			e := newWorld(t, seed)
			for i := range 80 {
				e.step()
				if i%8 == 7 {
					e.check()
				}
			}
			e.check()
			require.NoError(t, e.a.Close())
		})
	}
}
