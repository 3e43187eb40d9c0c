package archive

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// importForever prints the path of each imported file.
func importForever(dir string) {
	a, err := Open(dir, Options{})
	if err != nil {
		panic(err)
	}
	commitAt(a, 7) // so that a kill may interrupt a file
	paths, err := filepath.Glob(filepath.Join(os.Getenv(crashImports), "*.warc.gz"))
	if err != nil {
		panic(err)
	}
	for _, path := range paths {
		if _, err := a.Import(path); err != nil {
			panic(err)
		}
		fmt.Println(path)
	}
	select {}
}

// manyFiles writes n foreign files with ten pages each.
func manyFiles(t *testing.T, n int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	enc, err := warc.NewEncoder(warc.EncoderOptions{Level: 1})
	require.NoError(t, err)
	for i := range n {
		var out bytes.Buffer
		for j := range 10 {
			_, _, err := enc.Encode(&out, &warc.Head{Type: "resource", Date: someTime,
				TargetURI:   fmt.Sprintf("http://%d.test/%d", i, j),
				ContentType: "text/plain"}, fmt.Append(nil, "text ", i, j))
			require.NoError(t, err)
		}
		name := filepath.Join(dir, fmt.Sprintf("%03d.warc.gz", i))
		require.NoError(t, os.WriteFile(name, out.Bytes(), 0o644))
	}
	return dir
}

// A process is killed with kill -9 during imports. All acknowledged imports are complete, so is the
// interrupted one after the next open, and Repair makes the same index.
func TestKilledWhileImporting(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	from := manyFiles(t, 60)
	for round := range 4 {
		t.Run(fmt.Sprintf("seed=%d", round), func(t *testing.T) {
			dir := t.TempDir()
			lines := 1 + rand.New(rand.NewPCG(uint64(round), 7)).IntN(50)
			imported := killImport(t, dir, from, lines)
			a := openDir(t, dir, Options{})
			list := a.imports.list()
			require.Subset(t, list, imported)
			require.LessOrEqual(t, len(list), 60)
			for i := range list { // in the order of import
				for j := range 10 {
					v, err := a.At(fmt.Sprintf("http://%d.test/%d", i, j), time.Time{})
					require.NoError(t, err)
					require.Equal(t, list[i], v.Content.File)
				}
			}
			faults, checked := verify(t, a)
			require.Empty(t, faults)
			require.EqualValues(t, 10*len(list), checked.Versions)
			require.NoError(t, a.Close())
			before := indexContents(t, dir)
			_, err := Repair(dir, Options{})
			require.NoError(t, err)
			require.Equal(t, before, indexContents(t, dir))
		})
	}
}

// killImport runs a process until it has imported that many files, kills it, and returns all files
// that it reported.
func killImport(t *testing.T, dir, from string, lines int) (imported []string) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashImports+"="+from)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
		imported = append(imported, scanner.Text())
		if len(imported) == lines {
			require.NoError(t, cmd.Process.Kill())
		}
	}
	require.Error(t, cmd.Wait(), "it was killed")
	require.GreaterOrEqual(t, len(imported), lines)
	return imported
}
