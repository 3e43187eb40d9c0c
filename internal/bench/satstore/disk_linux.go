package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinneret-go/spinneret/internal/bench/measure"
)

// diskUse returns the disk space of a directory.
func diskUse(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		var s unix.Stat_t
		if err == nil && !entry.IsDir() {
			err = unix.Stat(name, &s)
			n += s.Blocks * 512
		}
		return err
	})
	return n, err
}

// A reading is what this process has read from the disk and written to it, in bytes.
type reading struct{ read, written int64 }

// usage does not count writes that were cancelled because the file was removed.
func usage() (r reading, err error) {
	var cancelled int64
	for name, to := range map[string]*int64{
		"read_bytes": &r.read, "write_bytes": &r.written, "cancelled_write_bytes": &cancelled,
	} {
		if *to, err = measure.ProcNumber("/proc/self/io", name); err != nil {
			return r, err
		}
	}
	r.written -= cancelled
	return r, nil
}

// sequentialRate writes and reads a file of 512 MiB.
func sequentialRate(name string) (float64, error) {
	const size, step = 512 << 20, 4 << 20
	f, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer os.Remove(name)
	defer f.Close()
	b := bytes.Repeat([]byte("sequential"), step/10+1)[:step]
	began := time.Now()
	for range size / step {
		if _, err := f.Write(b); err != nil {
			return 0, err
		}
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return 0, err
	}
	began = time.Now()
	for at := int64(0); ; at += step {
		if _, err := f.ReadAt(b, at); err == io.EOF {
			break
		} else if err != nil {
			return 0, err
		}
	}
	took += time.Since(began)
	return 2 * size / 1e6 / took.Seconds(), nil
}

// A group is a control group that limits memory, page cache included.
type group struct{ dir, procs string }

func newGroup(memory int64) (*group, error) {
	if memory <= 0 {
		return nil, errors.New("no limit is set")
	}
	var errs []error
	for root, file := range map[string]string{
		"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max",
	} {
		g := &group{dir: filepath.Join(root, fmt.Sprint("satstore-bench-", os.Getpid()))}
		g.procs = filepath.Join(g.dir, "cgroup.procs")
		err := os.Mkdir(g.dir, 0o755)
		if err == nil {
			err = setLimit(filepath.Join(g.dir, file), memory)
			if err == nil {
				return g, nil
			}
			g.remove()
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// setLimit writes to a file that the kernel has created. Without it, the directory is not a control
// group, and the write must fail rather than create a file.
func setLimit(name string, memory int64) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.FormatInt(memory, 10))
	return errors.Join(err, f.Close())
}

// enter makes a command start inside the group.
func (g *group) enter(cmd *exec.Cmd) {
	script := `echo $$ > "$0" && exec "$@"`
	cmd.Args = append([]string{"sh", "-c", script, g.procs}, cmd.Args...)
	cmd.Path = "/bin/sh"
}

func (g *group) remove() { _ = os.Remove(g.dir) } // it may still have pages
