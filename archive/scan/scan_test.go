package scan_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/scan"
)

// numbered yields documents whose data and value are their numbers.
func numbered(n int) iter.Seq2[scan.Document, error] {
	return func(yield func(scan.Document, error) bool) {
		data := make([]byte, 0, 16)
		for i := range n {
			data = strconv.AppendInt(data[:0], int64(i), 10) // the slice is reused
			if !yield(scan.Document{Data: data, Meta: []byte("meta"), Value: i}, nil) {
				return
			}
		}
	}
}

// collect returns the results by number, and the error that ended the scan.
func collect(t testing.TB, results iter.Seq2[scan.Result, error]) (map[int]scan.Result, error) {
	t.Helper()
	got := map[int]scan.Result{}
	for result, err := range results {
		if err != nil {
			return got, err
		}
		n := int(result.Number)
		_, twice := got[n]
		require.False(t, twice, "document %d", n)
		require.Equal(t, n, result.Value)
		got[n] = result
	}
	return got, nil
}

// double is the work of most tests.
func double(doc *scan.Document) ([]byte, error) {
	n, err := strconv.Atoi(string(doc.Data))
	return strconv.AppendInt(nil, int64(2*n), 10), err
}

func requireDoubled(t testing.TB, got map[int]scan.Result, n int, except ...int) {
	t.Helper()
	require.Len(t, got, n)
	for i := range n {
		if slices.Contains(except, i) {
			require.Error(t, got[i].Err, "document %d", i)
			continue
		}
		require.NoError(t, got[i].Err, "document %d", i)
		require.Equal(t, strconv.Itoa(2*i), string(got[i].Out))
	}
}

func TestEachDocumentHasOneResult(t *testing.T) {
	for _, workers := range []int{0, 1, 3, 50} {
		for _, depth := range []int{0, 1, 5} {
			for _, restart := range []int{0, 1, 7} {
				for _, ordered := range []bool{false, true} {
					o := scan.Options{Workers: workers, Depth: depth, RestartAfter: restart,
						Ordered: ordered}
					var stats scan.Stats
					next := int64(0)
					o.Progress = func(s scan.Stats) { stats = s }
					results := scan.Run(t.Context(), numbered(100), scan.Func(double), o)
					got, err := collect(t, func(yield func(scan.Result, error) bool) {
						for r, err := range results {
							if ordered {
								require.Equal(t, next, r.Number)
							}
							next++
							if !yield(r, err) {
								return
							}
						}
					})
					require.NoError(t, err)
					requireDoubled(t, got, 100)
					require.EqualValues(t, 100, stats.Results)
					require.Zero(t, stats.Deaths+stats.Failed)
				}
			}
		}
	}
}

// Slow documents do not delay other workers: all are busy until there are no more documents.
func TestIdleWorkersGetDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var busy atomic.Int64
		began := time.Now()
		work := func(doc *scan.Document) ([]byte, error) {
			took := time.Second
			if doc.Value.(int)%10 == 0 { // a few are slow
				took = 20 * time.Second
			}
			time.Sleep(took)
			busy.Add(int64(took))
			return double(doc)
		}
		got, err := collect(t, scan.Run(t.Context(), numbered(400), scan.Func(work), scan.Options{Workers: 4}))
		require.NoError(t, err)
		requireDoubled(t, got, 400)
		ideal := (40*20 + 360) * time.Second / 4
		require.Less(t, time.Since(began), ideal+40*time.Second)
		require.Greater(t, float64(busy.Load())/float64(4*time.Since(began)), 0.95)
	})
}

// A busy worker is sent the next documents, so that it need not wait for them.
func TestTheNextDocumentIsSentBeforeTheResult(t *testing.T) {
	for depth, want := range map[int]int64{1: 1, 2: 2, 5: 5} {
		synctest.Test(t, func(t *testing.T) {
			var sent atomic.Int64
			release := make(chan struct{})
			start := scan.WorkOf(func(o scan.Options) (scan.Worker, error) {
				w, err := scan.Func(func(doc *scan.Document) ([]byte, error) {
					<-release
					return double(doc)
				}).Start(o)
				return &counting{w, &sent}, err
			})
			done := make(chan error)
			go func() {
				got, err := collect(t, scan.Run(t.Context(), numbered(20), start,
					scan.Options{Workers: 1, Depth: depth}))
				requireDoubled(t, got, 20)
				done <- err
			}()
			synctest.Wait()
			require.Equal(t, want, sent.Load())
			close(release)
			require.NoError(t, <-done)
		})
	}
}

// counting counts the documents sent to a worker.
type counting struct {
	scan.Worker
	sent *atomic.Int64
}

func (c *counting) Send(number int64, doc *scan.Document) error {
	c.sent.Add(1)
	return c.Worker.Send(number, doc)
}

func TestADocumentThatKillsTwiceIsSkipped(t *testing.T) {
	for _, depth := range []int{1, 2, 6} {
		var stats scan.Stats
		calls := make([]atomic.Int64, 60)
		work := func(doc *scan.Document) ([]byte, error) {
			n := doc.Value.(int)
			call := calls[n].Add(1)
			if n == 13 || n == 14 && call == 1 {
				panic("poison")
			}
			return double(doc)
		}
		o := scan.Options{Workers: 3, Depth: depth, Progress: func(s scan.Stats) { stats = s }}
		got, err := collect(t, scan.Run(t.Context(), numbered(60), scan.Func(work), o))
		require.NoError(t, err)
		requireDoubled(t, got, 60, 13)
		require.ErrorIs(t, got[13].Err, scan.ErrSkipped)
		require.ErrorContains(t, got[13].Err, "poison")
		require.EqualValues(t, 2, calls[13].Load())
		require.EqualValues(t, 1, stats.Failed)
		require.EqualValues(t, 3, stats.Deaths)
	}
}

func TestHangingWorkerIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := func(doc *scan.Document) ([]byte, error) {
			if doc.Value.(int) == 5 {
				time.Sleep(time.Hour)
			}
			time.Sleep(time.Second)
			return double(doc)
		}
		began := time.Now()
		o := scan.Options{Workers: 2, Timeout: time.Minute}
		got, err := collect(t, scan.Run(t.Context(), numbered(20), scan.Func(work), o))
		require.NoError(t, err)
		requireDoubled(t, got, 20, 5)
		require.ErrorIs(t, got[5].Err, scan.ErrSkipped)
		require.Less(t, time.Since(began), 3*time.Minute)
		time.Sleep(2 * time.Hour) // until the abandoned workers have ended
	})
}

func TestFailuresAreNotDeaths(t *testing.T) {
	broken := errors.New("cannot be parsed")
	docs := func(yield func(scan.Document, error) bool) {
		for doc, err := range numbered(10) {
			if doc.Value == 3 {
				doc.Err = broken
			}
			if !yield(doc, err) {
				return
			}
		}
	}
	work := func(doc *scan.Document) ([]byte, error) {
		if doc.Value == 7 {
			return nil, broken
		}
		return double(doc)
	}
	var stats scan.Stats
	o := scan.Options{Progress: func(s scan.Stats) { stats = s }}
	got, err := collect(t, scan.Run(t.Context(), docs, scan.Func(work), o))
	require.NoError(t, err)
	requireDoubled(t, got, 10, 3, 7)
	require.ErrorIs(t, got[3].Err, broken)
	require.ErrorIs(t, got[7].Err, scan.ErrFailed)
	require.ErrorContains(t, got[7].Err, "cannot be parsed")
	require.EqualValues(t, 2, stats.Failed)
	require.Zero(t, stats.Deaths)
}

func TestTheEndOfAScan(t *testing.T) {
	broken := errors.New("disk on fire")
	failing := func(yield func(scan.Document, error) bool) {
		for doc := range numbered(5) {
			if !yield(doc, nil) {
				return
			}
		}
		yield(scan.Document{}, broken)
	}
	_, err := collect(t, scan.Run(t.Context(), failing, scan.Func(double), scan.Options{}))
	require.ErrorIs(t, err, broken)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err = range scan.Run(ctx, numbered(1e9), scan.Func(double), scan.Options{}) {
		if n++; n == 100 {
			cancel()
		}
	}
	require.ErrorIs(t, err, context.Canceled)

	for range scan.Run(t.Context(), numbered(1e9), scan.Func(double), scan.Options{}) {
		break // all goroutines end
	}

	noStart := scan.WorkOf(func(scan.Options) (scan.Worker, error) { return nil, broken })
	_, err = collect(t, scan.Run(t.Context(), numbered(5), noStart, scan.Options{}))
	require.ErrorIs(t, err, broken)

	dying := scan.Func(func(*scan.Document) ([]byte, error) { panic("always") })
	_, err = collect(t, scan.Run(t.Context(), numbered(1e9), dying, scan.Options{}))
	require.ErrorIs(t, err, scan.ErrWorkers)

	got, err := collect(t, scan.Run(t.Context(), numbered(0), noStart, scan.Options{}))
	require.NoError(t, err, "without documents no worker is started")
	require.Empty(t, got)
}

// childMode is an environment variable that turns the test binary into a worker with the behavior
// of a mode.
const childMode = "SPINNERET_SCAN_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		child(mode)
		return
	}
	os.Exit(m.Run())
}

// child doubles numbers, and misbehaves at 13.
func child(mode string) {
	_ = scan.Serve(os.Stdin, os.Stdout, func(meta, data []byte) ([]byte, error) {
		if string(meta) != "meta" {
			return nil, errors.New("meta is missing")
		}
		if string(data) == "13" {
			misbehave(mode)
		}
		return double(&scan.Document{Data: data})
	})
}

func misbehave(mode string) {
	switch mode {
	case "crash":
		os.Exit(3)
	case "hang":
		select {}
	case "leak":
		var held [][]byte
		for range 32 { // more than the limit set by the shell
			held = append(held, bytes.Repeat([]byte("x"), 1<<28))
		}
		os.Exit(len(held))
	case "print":
		fmt.Println("debugging")
	case "lie":
		fmt.Printf("OK 99999 2\n26")
	case "boast":
		fmt.Printf("OK 13 999999999999\n")
	case "stop":
		os.Stdout.Close()
	}
}

func childProcess(mode string, started *atomic.Int64) scan.Work {
	return scan.Process(func() *exec.Cmd {
		started.Add(1)
		cmd := exec.Command(os.Args[0])
		if mode == "leak" {
			cmd = exec.Command("sh", "-c", "ulimit -v 4000000; exec "+os.Args[0])
		}
		cmd.Env = append(os.Environ(), childMode+"="+mode)
		return cmd
	})
}

// A misbehaving child process affects only the document that causes it.
func TestChildren(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	modes := []string{"good", "crash", "hang", "leak", "print", "lie", "boast", "stop"}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			o := scan.Options{Workers: 2, Depth: 3, RestartAfter: 40}
			if mode == "hang" {
				o.Timeout = 2 * time.Second
			}
			var started atomic.Int64
			var stats scan.Stats
			o.Progress = func(s scan.Stats) { stats = s }
			got, err := collect(t, scan.Run(t.Context(), numbered(100), childProcess(mode, &started), o))
			require.NoError(t, err)
			if mode == "good" {
				requireDoubled(t, got, 100)
				require.Greater(t, started.Load(), int64(2), "workers are restarted")
				return
			}
			requireDoubled(t, got, 100, 13)
			require.ErrorIs(t, got[13].Err, scan.ErrSkipped)
			require.GreaterOrEqual(t, stats.Deaths, int64(2))
		})
	}
}

// python is a worker in another language.
const python = `
import sys
i, o = sys.stdin.buffer, sys.stdout.buffer
for line in i:
	word, id, meta, data = line.split()
	assert word == b'DOC' and i.read(int(meta)) == b'meta'
	text = i.read(int(data))
	if text == b'7':
		o.write(b'FAIL %s 5\nseven' % id)
	else:
		out = b'%d' % (2 * int(text))
		o.write(b'OK %s %d\n%s' % (id, len(out), out))
	o.flush()
`

func TestPythonWorker(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil || testing.Short() {
		t.Skip("no python3")
	}
	got, err := collect(t, scan.Run(t.Context(), numbered(50),
		scan.Command("python3", "-c", python), scan.Options{Workers: 2, Ordered: true}))
	require.NoError(t, err)
	requireDoubled(t, got, 50, 7)
	require.ErrorContains(t, got[7].Err, "seven")
}

func TestMissingProgram(t *testing.T) {
	_, err := collect(t, scan.Run(t.Context(), numbered(5), scan.Command("/no/such/program"),
		scan.Options{}))
	require.ErrorContains(t, err, "start worker")
}

func TestServeRejectsInvalidInput(t *testing.T) {
	for _, in := range []string{"x\n", "DOC 1 2\n", "DOC 1 -2 3\nxxx", "DOC 1 1 1\nx",
		strings.Repeat("x", 1000), "DOC"} {
		nothing := func(_, _ []byte) ([]byte, error) { return nil, nil }
		err := scan.Serve(strings.NewReader(in), &bytes.Buffer{}, nothing)
		require.ErrorContains(t, err, "read document", in)
	}
}
