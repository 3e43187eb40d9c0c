//go:build linux

package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// flatEngine rewrites a file of all records, in the order of their numbers, for each slot.
type flatEngine struct {
	w   *workload
	dir string
}

func openFlat(c config, w *workload) (engine, error) { return &flatEngine{w, c.Dir}, nil }

func (e *flatEngine) name(s string) string { return filepath.Join(e.dir, s) }

func (e *flatEngine) load() error {
	return e.write("flat", func(out *bufio.Writer) error {
		var b []byte
		for i := range e.w.records {
			interval, _ := e.w.plan(i)
			b = e.w.data(append(b[:0], 0, 0), i, interval)
			b = e.w.url(b, i)
			binary.LittleEndian.PutUint16(b, uint16(len(b)-2))
			if _, err := out.Write(b); err != nil {
				return err
			}
		}
		return nil
	})
}

// write creates a file and syncs it.
func (e *flatEngine) write(name string, fill func(*bufio.Writer) error) error {
	f, err := os.Create(e.name(name))
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	err = errors.Join(fill(out), out.Flush(), f.Sync())
	return errors.Join(err, f.Close())
}

func (e *flatEngine) unit(slot int64, due []int32) (records int, err error) {
	f, err := os.Open(e.name("flat"))
	if err != nil {
		return 0, err
	}
	in := bufio.NewReaderSize(f, 1<<20)
	err = e.write("new", func(out *bufio.Writer) error {
		b := make([]byte, 2, 1<<16)
		for i := range e.w.records {
			if _, err := io.ReadFull(in, b[:2]); err != nil {
				return err
			}
			b = b[:2+int(binary.LittleEndian.Uint16(b))]
			if _, err := io.ReadFull(in, b[2:]); err != nil {
				return err
			}
			if records < len(due) && int(due[records]) == i {
				visit(b[2:], slot)
				records++
			}
			if _, err := out.Write(b); err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(e.name("new"), e.name("flat"))
	}
	return records, err
}

func (e *flatEngine) close() error { return nil }
