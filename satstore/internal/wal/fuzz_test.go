package wal

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// FuzzDiff: a diff turns the old data into the new, within the maximum size.
func FuzzDiff(f *testing.F) {
	f.Add([]byte("the old data"), []byte("the new data"))
	f.Add([]byte("shorter"), []byte("a bit longer than that"))
	f.Add([]byte{}, []byte{1})
	f.Add(make([]byte, 300), bytes.Repeat([]byte{0, 0, 0, 0, 1}, 60))
	f.Fuzz(func(t *testing.T, old, data []byte) {
		h := Change{Kind: Move, Old: old, Data: data}
		b := (&coder{}).append(nil, &h)
		require.LessOrEqual(t, len(b), MaxSize(len(data)))
		d := durable.Decoder{B: b}
		found := (&coder{}).take(&d)
		require.False(t, d.Bad)
		require.Empty(t, d.B)
		got, ok := ApplyDiff(old, found.Data)
		require.True(t, ok)
		require.True(t, bytes.Equal(data, got))
	})
}

// FuzzApplyDiff: untrusted bytes produce data of the length that they begin with, or an error.
func FuzzApplyDiff(f *testing.F) {
	f.Add([]byte("old"), []byte{3, 1, 1, 'x', 1})
	f.Add([]byte("old"), []byte{2, 1, 1})
	f.Fuzz(func(t *testing.T, old, diff []byte) {
		data, ok := ApplyDiff(old, diff)
		if !ok {
			return
		}
		if n, _ := binary.Uvarint(diff); uint64(len(data)) != n {
			t.Errorf("%x on %x: %x", diff, old, data)
		}
	})
}

// FuzzChange: decoded changes survive encoding and decoding.
func FuzzChange(f *testing.F) {
	for kind := Add; kind <= rotate; kind++ {
		h := Change{
			Kind: kind, Bucket: 3, Record: 8, Slot: 107, Seq: 2, Count: 4,
			ID: "id", Data: []byte("data"), Old: []byte("date"),
		}
		f.Add((&coder{base: 100}).append(nil, &h))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		d := durable.Decoder{B: in}
		h := (&coder{base: 100}).take(&d)
		if d.Bad || h.Kind == Move { // covered by FuzzDiff
			return
		}
		b := (&coder{base: 100}).append(nil, &h)
		require.LessOrEqual(t, len(b), MaxSize(len(h.ID)+len(h.Data)))
		again := durable.Decoder{B: b}
		require.Equal(t, h, (&coder{base: 100}).take(&again))
		require.Empty(t, again.B)
	})
}

// FuzzReplay: whatever a log and the pending file contain, a replay ends, with changes or an error.
func FuzzReplay(f *testing.F) {
	file := &File{number: 3, end: logHeader}
	changes := (&coder{}).append(nil, added("one"))
	first := file.appendGroup(nil, changes, 0)
	file.end += int64(len(first))
	f.Add(append(first, file.appendGroup(nil, append(changes, byte(rotate)), 20)...), []byte{})
	f.Add([]byte{}, changes)
	f.Fuzz(func(t *testing.T, in, changes []byte) {
		fs := vfs.NewMem()
		fs.Put(FileName(3), append(logHead(3, 0), in...))
		fs.Put(FileName(4), append(logHead(4, 0), in...))
		if len(changes) > 0 {
			h := mustHalves(t, fs, max(2*len(changes)+512, 512))
			h[1].put(t, 3, logHeader, string(changes))
		}
		visited := int64(0)
		done, err := Replay(fs, 3, func([]Change) {}, func(*Change) error {
			visited++
			return nil
		})
		if err != nil {
			require.ErrorIs(t, err, durable.ErrCorrupt)
		}
		require.Equal(t, visited, done.Changes)
	})
}

// FuzzPending: whatever the file contains, only changes with a valid checksum are read from it, and
// published changes are found.
func FuzzPending(f *testing.F) {
	fs := vfs.NewMem()
	h := mustHalves(f, fs, 512)
	h[0].put(f, 3, 20, "changes")
	f.Add(fs.Data(PendingName), uint64(3), int64(20), []byte("more"))
	f.Fuzz(func(t *testing.T, in []byte, number uint64, end int64, changes []byte) {
		if found := pendingAfter(in, number, end); found != nil {
			require.LessOrEqual(t, len(found), len(in))
		}
		if len(changes) == 0 || len(changes) > 200 {
			return
		}
		fs := vfs.NewMem()
		h := mustHalves(t, fs, max(len(in)&^15, 512))
		h[1].put(t, number, end, string(changes))
		require.Equal(t, changes, pendingAfter(fs.Data(PendingName), number, end))
		require.Nil(t, pendingAfter(fs.Data(PendingName), number+1, end))
		require.Nil(t, pendingAfter(fs.Data(PendingName), number, end+1))
	})
}
