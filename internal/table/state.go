package table

import (
	"encoding/binary"
	"fmt"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// Version is the number of the byte layout of files and states. It is part of each state. Raise it
// with each change.
const Version = 3

// A State says which files are a table. Its owner keeps it in his manifest.
type State struct {
	Last uint64     // number of the latest file
	Runs []RunState // the oldest first
}

// A RunState is a run of a State.
type RunState struct {
	Files  []uint64
	Inputs int    // number of runs before this one that are being merged into it
	Low    []byte // if there are any: their entries below it have moved here
}

// State returns the current state.
func (t *Table) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := State{Last: t.last}
	for _, r := range t.view.runs {
		rs := RunState{}
		if r.job != nil {
			rs.Inputs, rs.Low = r.job.inputs, r.job.low
		}
		for _, s := range r.segments {
			rs.Files = append(rs.Files, s.number)
		}
		st.Runs = append(st.Runs, rs)
	}
	return st
}

// Names returns the names of all files, for a table with [Options].Name name.
func (st State) Names(name string) (names []string) {
	for _, r := range st.Runs {
		for _, number := range r.Files {
			names = append(names, FileName(name, number))
		}
	}
	return names
}

// Append appends the encoded state.
func (st State) Append(dst []byte) []byte {
	dst = appendUvarints(dst, Version, st.Last, uint64(len(st.Runs)))
	for _, r := range st.Runs {
		dst = appendUvarints(dst, uint64(r.Inputs))
		if r.Inputs > 0 {
			dst = append(appendUvarints(dst, uint64(len(r.Low))), r.Low...)
		}
		dst = appendUvarints(dst, uint64(len(r.Files)))
		dst = appendUvarints(dst, r.Files...)
	}
	return dst
}

func appendUvarints(dst []byte, all ...uint64) []byte {
	for _, n := range all {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

// TakeState decodes a state that Append appended, and returns the bytes after it. It accepts only
// possible states. The file is for errors.
func TakeState(b []byte, file string) (st State, rest []byte, err error) {
	d := durable.Decoder{B: b}
	if version := d.Number(1 << 32); !d.Bad && version != Version {
		return st, nil, durable.Version(file, fmt.Sprint("tables of version ", version))
	}
	st.Last = d.Uvarint()
	free := uint64(0) // runs that may be inputs of a merge
	seen := map[uint64]bool{}
	for n := d.Length(len(d.B)); n > 0 && !d.Bad; n-- {
		r := RunState{Inputs: int(d.Number(free))}
		if r.Inputs > 0 {
			r.Low = d.Bytes(len(d.B))
		}
		for files := d.Length(len(d.B)); files > 0 && !d.Bad; files-- {
			number := d.Number(st.Last)
			d.Bad = d.Bad || seen[number]
			seen[number] = true
			r.Files = append(r.Files, number)
		}
		if free++; r.Inputs > 0 {
			free = 0 // inputs are next to their output, and merges do not share any
		}
		st.Runs = append(st.Runs, r)
	}
	if d.Bad {
		return State{}, nil, durable.Corrupt(file, int64(len(b)-len(d.B)), "an impossible table")
	}
	return st, d.B, nil
}
