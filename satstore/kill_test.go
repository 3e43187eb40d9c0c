package satstore

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// childEnv names the directory for the process that TestKill kills.
	childEnv = "SPINNERET_SATSTORE_CHILD"
	// killsEnv says how often it does. A few times show that the test works; hundreds, that the
	// store does.
	killsEnv = "SPINNERET_SATSTORE_KILLS"
)

// TestMain is the child, if there is a directory for it.
func TestMain(m *testing.M) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	fmt.Println("error", work(dir))
	os.Exit(1)
}

func childOptions() Options {
	return Options{
		Start: 1000, Buffer: 128 << 10, Page: 1 << 10, Radix: 8, Horizon: 5000,
		Commit: time.Millisecond,
	}
}

// work adds, visits and deletes until it is killed. The data of a record is how often it was
// visited. It says what it does, and after each Sync that all of it is acknowledged.
func work(dir string) error {
	s, err := Open(dir, childOptions())
	if err != nil {
		return err
	}
	defer s.Close()
	out := bufio.NewWriter(os.Stdout)
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for round := 0; ; round++ {
		for range 50 {
			id := fmt.Sprint("https://a.test/", random.Uint32())
			if _, err := s.Add(id, s.Now()+int64(random.IntN(200)), []byte("0")); err != nil {
				return err
			}
			fmt.Fprintln(out, "set", id, 0)
		}
		for r, err := range s.Due(context.Background()) {
			if err != nil {
				return err
			}
			visits, err := strconv.Atoi(string(r.Data))
			if err != nil {
				return err
			}
			id := string(r.ID)
			if random.IntN(50) == 0 {
				fmt.Fprintln(out, "gone", id)
				out.Flush() // for what is gone must have been said to go
				err = r.Delete()
			} else {
				next := s.Now() + 1 + int64(random.IntN(1000))
				err = r.Reschedule(next, strconv.AppendInt(nil, int64(visits+1), 10))
				fmt.Fprintln(out, "set", id, visits+1)
			}
			if err != nil {
				return err
			}
		}
		if err := s.Advance(); err != nil {
			return err
		}
		if random.IntN(4) == 0 {
			out.Flush()
			if err := s.Sync(); err != nil {
				return err
			}
			fmt.Fprintln(out, "ack")
			out.Flush()
		}
	}
}

// TestKill kills a process under load again and again. Each record that it acknowledged must be
// there once, as it was acknowledged or later.
func TestKill(t *testing.T) {
	kills := 2
	if text := os.Getenv(killsEnv); text != "" {
		var err error
		kills, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	acknowledged := map[string]int{} // visits, or -1 if it is gone
	for range kills {
		later := killOnce(t, dir, 1+random.IntN(8), acknowledged)
		s, err := Open(dir, childOptions())
		require.NoError(t, err)
		require.NoError(t, s.Check())
		got := contents(t, s)
		for id, visits := range acknowledged {
			_, text, found := strings.Cut(got[id], " ")
			if !found {
				require.True(t, visits < 0 || later[id] < 0, "%s with %d is lost", id, visits)
				continue
			}
			n, err := strconv.Atoi(text)
			require.NoError(t, err)
			require.True(t, n >= visits && visits >= 0, "%s: %d, and not %d", id, n, visits)
			acknowledged[id] = n
		}
		clear(acknowledged)
		for id, text := range got {
			_, text, _ := strings.Cut(text, " ")
			acknowledged[id], err = strconv.Atoi(text)
			require.NoError(t, err)
		}
		require.NoError(t, s.Sync())
		require.NoError(t, s.Close())
	}
}

// killOnce lets the child acknowledge so many times, kills it at the next chance, and adds what it
// acknowledged by then. What it did later it returns.
func killOnce(
	t *testing.T, dir string, acks int, acknowledged map[string]int,
) (later map[string]int) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	later = map[string]int{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word := strings.Fields(lines.Text())
		switch {
		case len(word) == 1 && word[0] == "ack":
			for id, visits := range later {
				acknowledged[id] = visits
			}
			clear(later)
			if acks--; acks == 0 {
				require.NoError(t, child.Process.Kill())
			}
		case len(word) == 2 && word[0] == "gone":
			later[word[1]] = -1
		case len(word) == 3 && word[0] == "set":
			visits, err := strconv.Atoi(word[2])
			require.NoError(t, err)
			later[word[1]] = visits
		default:
			require.LessOrEqual(t, acks, 0, lines.Text()) // else the kill has cut the line
		}
	}
	require.Error(t, child.Wait())
	return later
}
