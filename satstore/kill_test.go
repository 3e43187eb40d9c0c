package satstore

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/satstore/internal/calendar"
)

const (
	// childEnv names the directory for a process that a test starts, and roleEnv its task.
	childEnv = "SPINNERET_SATSTORE_CHILD"
	roleEnv  = "SPINNERET_SATSTORE_ROLE"
	// killsEnv sets how often TestKill kills. A few times show that the test works; hundreds, that
	// the store does.
	killsEnv = "SPINNERET_SATSTORE_KILLS"
)

// roles are the tasks of started processes. Each runs until it fails or is killed.
var roles = map[string]func(dir string) error{
	"work": func(dir string) error {
		w := &worker{random: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))}
		return w.run(dir)
	},
}

// TestMain runs a role if the environment names one.
func TestMain(m *testing.M) {
	role := roles[os.Getenv(roleEnv)]
	if role == nil {
		os.Exit(m.Run())
	}
	if err := role(os.Getenv(childEnv)); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// startRole starts this test binary in a role.
func startRole(role, dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// killOptions are small, so that a kill hits flushes, splits and checkpoints. The data is a number,
// and a message is added to it.
func killOptions() Options {
	return Options{
		Start: at(1000), Buffer: 128 << 10, Commit: time.Millisecond,
		test: testOptions{
			page: 1 << 10, pending: 64 << 10, shape: calendar.Shape{First: 3, More: 3},
		},
		Merge: func(_ string, data, message []byte) []byte {
			n, _ := strconv.Atoi(string(data))
			more, _ := strconv.Atoi(string(message))
			return strconv.AppendInt(nil, int64(n+more), 10)
		},
	}
}

// A worker adds, visits, changes and deletes. It prints each operation before it starts and after
// it is done, with a system call each.
type worker struct {
	random *rand.Rand
	s      *Store
	values map[string]int // by id
	late   []*Record      // that are out
	now    int64
}

func (w *worker) run(dir string) (err error) {
	if w.s, err = Open(dir, killOptions()); err != nil {
		return err
	}
	defer w.s.Close()
	w.values, w.now = map[string]int{}, nowOf(w.s)
	for item, err := range w.s.Scan() {
		if err != nil {
			return err
		}
		w.values[item.ID], _ = strconv.Atoi(string(item.Data))
	}
	for err == nil {
		err = w.slot()
	}
	return err
}

// do changes the value of an id, or removes it if the value is negative.
func (w *worker) do(id string, value int, change func() error) error {
	fmt.Fprintf(os.Stdout, "will %s %d\n", id, value)
	if err := change(); err != nil {
		return err
	}
	if value < 0 {
		delete(w.values, id)
	} else {
		w.values[id] = value
	}
	_, err := fmt.Fprintf(os.Stdout, "done %s %d\n", id, value)
	return err
}

func (w *worker) slot() error {
	for range min(30, 2000-len(w.values)) { // bounds the time of each kill
		if err := w.add(); err != nil {
			return err
		}
	}
	w.now++
	for r, err := range w.s.Due(context.Background(), at(w.now)) {
		if err != nil {
			return err
		}
		if w.random.IntN(3) == 0 {
			r = r.Detach()
		}
		w.late = append(w.late, r)
		for len(w.late) > 20 {
			if err := w.visit(w.random.IntN(len(w.late))); err != nil {
				return err
			}
		}
		if w.random.IntN(10) == 0 {
			if err := w.message(); err != nil {
				return err
			}
		}
	}
	if w.random.IntN(4) == 0 {
		return w.s.Sync()
	}
	return nil
}

func (w *worker) add() error {
	id := fmt.Sprint("https://a.test/", w.random.Uint64())
	return w.do(id, 0, func() error {
		_, err := w.s.Add(id, at(w.now+int64(w.random.IntN(200))), []byte("0"))
		return err
	})
}

// visit returns a record.
func (w *worker) visit(i int) error {
	r := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	id := r.ID
	n, err := strconv.Atoi(string(r.Data))
	if err != nil {
		return err
	}
	if _, known := w.values[id]; !known {
		return r.Delete() // its id was deleted while it was being handed out
	}
	if w.random.IntN(40) == 0 {
		return w.do(id, -1, r.Delete)
	}
	return w.do(id, w.values[id]+1, func() error {
		next := at(w.now + 1 + int64(w.random.IntN(1000)))
		return r.Reschedule(next, strconv.AppendInt(nil, int64(n+1), 10))
	})
}

// message changes or deletes a record by its id, whether it is out or not.
func (w *worker) message() error {
	for id, value := range w.values { // any one
		out := slices.ContainsFunc(w.late, func(r *Record) bool { return r.ID == id })
		if !out && w.random.IntN(4) == 0 {
			return w.do(id, -1, func() error { return w.s.Delete(id) })
		}
		return w.do(id, value+100, func() error { return w.s.Update(id, []byte("100")) })
	}
	return nil
}

// TestKill kills a process under load again and again. All completed operations must be found, and
// each record once, in its last state. The operation in progress may be found or not.
func TestKill(t *testing.T) {
	t.Parallel()
	kills := 3
	if text := os.Getenv(killsEnv); text != "" {
		var err error
		kills, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	values := map[string]int{}
	for range kills {
		id, value := killOnce(t, dir, 1+random.IntN(6_000), values)
		s, err := Open(dir, killOptions())
		require.NoError(t, err)
		require.NoError(t, s.Check())
		got := map[string]int{}
		for id, text := range contents(t, s) {
			_, text, _ := strings.Cut(text, " ")
			got[id], err = strconv.Atoi(text)
			require.NoError(t, err)
		}
		if n, found := got[id]; found && n == value || !found && value < 0 {
			setValue(values, id, value)
		}
		for id, value := range values {
			if n, found := got[id]; !found || n != value {
				t.Errorf("%s is %d (%v), want %d", id, n, found, value)
			}
		}
		require.True(t, maps.Equal(values, got), "%d and %d records", len(values), len(got))
		if random.IntN(2) == 0 {
			require.NoError(t, s.Close())
		} else {
			abandon(s) // so that the next process finds the state after this recovery
		}
	}
}

func setValue(values map[string]int, id string, value int) {
	if value < 0 {
		delete(values, id)
	} else if id != "" {
		values[id] = value
	}
}

// killOnce lets the worker complete some operations, kills it during the next ones, and records all
// that it reported as done. It returns the operation in progress.
func killOnce(
	t *testing.T, dir string, things int, values map[string]int,
) (id string, value int) {
	t.Helper()
	child := startRole("work", dir)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // the operation of an incomplete line was not started
		}
		word := strings.Fields(line)
		require.Len(t, word, 3, line)
		n, err := strconv.Atoi(word[2])
		require.NoError(t, err, line)
		if id, value = word[1], n; word[0] == "done" {
			setValue(values, id, value)
			id = ""
		}
		if things--; things == 0 {
			require.NoError(t, child.Process.Kill())
		}
	}
	require.Error(t, child.Wait())
	return id, value
}
