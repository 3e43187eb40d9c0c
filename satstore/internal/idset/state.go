package idset

import (
	"encoding/binary"
	"slices"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// A State is the part of a checkpoint about a set: its files.
type State struct {
	File uint64 // number of the latest file
	Runs []RunState
}

// A RunState is a run of a State.
type RunState struct {
	Files  []uint64
	Merges int // number of runs before this one that are being merged into it
	Low    Key // their entries below it have moved here
}

// State returns the state of the flushed entries.
func (x *Set) State() State {
	x.mu.RLock()
	defer x.mu.RUnlock()
	st := State{File: x.file}
	for i, r := range x.runs {
		rs := RunState{Merges: r.merges}
		if r.merges > 0 {
			rs.Low = x.runs[i-1].low
		}
		for _, s := range r.segments {
			rs.Files = append(rs.Files, s.number)
		}
		st.Runs = append(st.Runs, rs)
	}
	return st
}

// Saved removes files that are no longer needed now that st is in a durable checkpoint. A file that
// cannot be removed does no harm, since no state names it.
func (x *Set) Saved(st State) {
	names := st.Names()
	x.mu.Lock()
	old := x.obsolete
	x.obsolete = nil
	for _, name := range old {
		if slices.Contains(names, name) { // it became obsolete since
			x.obsolete = append(x.obsolete, name)
		}
	}
	x.mu.Unlock()
	for _, name := range old {
		if !slices.Contains(names, name) {
			_ = x.fs.Remove(name)
		}
	}
}

// Names returns the names of all files.
func (st State) Names() (names []string) {
	for _, r := range st.Runs {
		for _, number := range r.Files {
			names = append(names, FileName(number))
		}
	}
	return names
}

// Open opens the files of a state.
func Open(fs vfs.FS, st State) (*Set, error) {
	x := New(fs)
	x.file = st.File
	for _, rs := range st.Runs {
		r := &run{merges: rs.Merges}
		for _, input := range x.runs[len(x.runs)-rs.Merges:] {
			input.low = rs.Low
		}
		x.runs = append(x.runs, r)
		for _, number := range rs.Files {
			s, err := openSegment(fs, number)
			if err == nil && len(r.segments) > 0 && !r.segments[len(r.segments)-1].before(s) {
				_ = s.file.Close()
				err = disk.Corrupt(s.name(), 0, "segments out of order")
			}
			if err != nil {
				_ = x.Close() // the first error says more
				return nil, err
			}
			r.segments = append(r.segments, s)
		}
	}
	return x, nil
}

func (s *segment) before(next *segment) bool {
	return compareKeys(s.firsts[len(s.firsts)-1], next.firsts[0]) < 0
}

// Append appends the encoded state.
func (st State) Append(dst []byte) []byte {
	dst = appendUvarints(dst, st.File, uint64(len(st.Runs)))
	for _, r := range st.Runs {
		dst = binary.AppendUvarint(dst, uint64(r.Merges))
		if r.Merges > 0 {
			dst = append(dst, r.Low[:]...)
		}
		dst = binary.AppendUvarint(dst, uint64(len(r.Files)))
		dst = appendUvarints(dst, r.Files...)
	}
	return dst
}

// TakeState decodes a state that Append appended. It accepts only possible states.
func TakeState(d *disk.Decoder) (st State) {
	st.File = d.Uvarint()
	free := 0 // runs that may be inputs of a merge
	seen := map[uint64]bool{}
	for n := d.Length(maxSegments); len(st.Runs) < n && !d.Bad; {
		r := RunState{}
		if r.Merges = d.Length(free); r.Merges > 0 {
			copy(r.Low[:], d.Take(KeySize))
		}
		for files := d.Length(len(d.B)); len(r.Files) < files && !d.Bad; {
			number := d.Number(st.File)
			d.Bad = d.Bad || seen[number]
			seen[number] = true
			r.Files = append(r.Files, number)
		}
		if free++; r.Merges > 0 {
			free = 0
		}
		st.Runs = append(st.Runs, r)
	}
	return st
}

func appendUvarints(dst []byte, all ...uint64) []byte {
	for _, n := range all {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}
