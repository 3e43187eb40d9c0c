package satstore

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// FuzzDiff: a diff leads from the old data to the new, and what follows it is left alone.
func FuzzDiff(f *testing.F) {
	f.Add([]byte("the old data"), []byte("the new data"))
	f.Add([]byte("shorter"), []byte("a bit longer than that"))
	f.Add([]byte{}, []byte{1})
	f.Fuzz(func(t *testing.T, old, data []byte) {
		diff := append(appendDiff(nil, old, data), "rest"...)
		got, rest, ok := applyDiff(old, diff)
		if !ok || !bytes.Equal(got, data) || string(rest) != "rest" {
			t.Errorf("from %x to %x: %x, %q, %v", old, data, got, rest, ok)
		}
	})
}

// FuzzApplyDiff: foreign bytes lead to data of the length that they begin with, or to nothing.
func FuzzApplyDiff(f *testing.F) {
	f.Add([]byte("old"), []byte{3, 1, 1, 'x', 1})
	f.Add([]byte("old"), []byte{2, 1, 1})
	f.Fuzz(func(t *testing.T, old, diff []byte) {
		data, rest, ok := applyDiff(old, diff)
		if !ok {
			return
		}
		if n, _ := binary.Uvarint(diff); uint64(len(data)) != n || !bytes.HasSuffix(diff, rest) {
			t.Errorf("%x on %x: %x, %x", diff, old, data, rest)
		}
	})
}

// encode appends a block to dst.
func (c *codec) encode(dst []byte, b block) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, blockHeader)...)
	return c.seal(append(dst, b.raw...), start, b)
}

// FuzzBlock: what decodes encodes to something that decodes to the same.
func FuzzBlock(f *testing.F) {
	for _, kind := range []Compression{None, S2, Zstd} {
		c := codec{kind: kind}
		raw := bytes.Repeat([]byte("entry "), 100)
		b := block{magic: recordsMagic, bucket: 7, first: 9, count: 2, raw: raw}
		f.Add(c.encode(nil, b), int(kind))
	}
	f.Fuzz(func(t *testing.T, b []byte, kind int) {
		if len(b) >= blockHeader { // the checksum would keep all else out
			b = bytes.Clone(b)
			size := min(len(b), blockHeader+int(binary.LittleEndian.Uint32(b[8:])))
			binary.LittleEndian.PutUint32(b, disk.Sum(b[4:max(size, blockHeader)]))
		}
		c := codec{kind: Compression(uint(kind) % 3)}
		found, size, reason := c.decode(nil, b)
		if reason != "" {
			return
		}
		require.LessOrEqual(t, size, len(b))
		again, _, reason := c.decode(nil, c.encode(nil, found))
		require.Empty(t, reason)
		require.Equal(t, found, again)
	})
}

// FuzzEntries: records and messages that decode encode to something that decodes to the same.
func FuzzEntries(f *testing.F) {
	b := bucket{start: 5, width: 3}
	f.Add(b.appendEntry(nil, entry{7, 6, []byte("id"), []byte("data")}, true), int64(3), true)
	f.Add(appendMessage(nil, 7, message{messageUpdate, []byte("text")}), int64(1), false)
	f.Fuzz(func(t *testing.T, in []byte, width int64, indexed bool) {
		b := bucket{start: 5, width: width & 1}
		d := disk.Decoder{B: in}
		if e := b.takeEntry(&d, indexed); !d.Bad {
			again := disk.Decoder{B: b.appendEntry(nil, e, indexed)}
			require.Equal(t, e, b.takeEntry(&again, indexed))
			require.Empty(t, again.B)
		}
		d = disk.Decoder{B: in}
		if seq, m := takeMessage(&d); !d.Bad {
			again := disk.Decoder{B: appendMessage(nil, seq, m)}
			sameSeq, same := takeMessage(&again)
			require.Equal(t, seq, sameSeq)
			require.Equal(t, m, same)
		}
	})
}

// FuzzChange: a change that decodes encodes to something that decodes to the same.
func FuzzChange(f *testing.F) {
	for kind := byte(changeAdd); kind <= changeAdvance; kind++ {
		h := change{
			kind: kind, bucket: 3, record: 8, slot: 107, seq: 2,
			id: []byte("id"), data: []byte("data"),
			message: message{messageDelete, []byte("m")},
		}
		f.Add((&coder{}).append(nil, &h, 100, []byte("date")))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		d := disk.Decoder{B: in}
		h := (&coder{}).take(&d, 100)
		if d.Bad || h.kind == changeDiff { // for which there is FuzzDiff
			return
		}
		again := disk.Decoder{B: (&coder{}).append(nil, &h, 100, nil)}
		require.Equal(t, h, (&coder{}).take(&again, 100))
		require.Empty(t, again.B)
	})
}

// FuzzManifest: a checkpoint that decodes encodes to something that decodes to the same.
func FuzzManifest(f *testing.F) {
	p := newPlayer(f, Options{}, 1)
	for range 200 {
		require.NoError(f, p.play())
	}
	require.NoError(f, p.s.Close())
	b := p.fs.Data(checkpointName)
	f.Add(b[checkpointHead : len(b)/2])
	f.Fuzz(func(t *testing.T, in []byte) {
		m := decodeManifest(in)
		if m == nil {
			return
		}
		again := decodeManifest(m.encode(nil))
		require.NotNil(t, again)
		require.Equal(t, m.encode(nil), again.encode(nil))
	})
}

// FuzzLog: whatever a log holds, reading it ends, with changes of whole groups or an error.
func FuzzLog(f *testing.F) {
	l, err := createLog(vfs.NewMem(), 3, false)
	require.NoError(f, err)
	first := l.frame(nil, []byte("some changes"))
	require.NoError(f, l.write(first))
	l.synced = l.end
	f.Add(append(first, l.frame(nil, []byte("more"))...))
	f.Fuzz(func(t *testing.T, in []byte) {
		fs := vfs.NewMem()
		fs.Put(logName(3), append(logHead(3), in...))
		r, err := openLog(fs, 3)
		require.NoError(t, err)
		for {
			at := r.at
			changes, err := r.next()
			if err != nil {
				require.ErrorIs(t, err, ErrCorrupt)
				return
			}
			if changes == nil {
				return
			}
			require.Equal(t, at+groupHeader+len(changes), r.at)
		}
	})
}

// FuzzPending: whatever the file holds, only changes whose checksum fits are taken from it, and
// writing them again leads to the same.
func FuzzPending(f *testing.F) {
	fs := vfs.NewMem()
	m, err := fs.Map(pendingName, 1<<10)
	require.NoError(f, err)
	h := halves(m)
	changes := append(h[0].begin(7, 20), "some changes"...)
	h[0].publish(changes)
	h[1].publish(append(h[1].begin(7, 99), "more"...))
	f.Add(fs.Data(pendingName), uint64(7), int64(20))
	f.Add(fs.Data(pendingName), uint64(7), int64(99))
	f.Fuzz(func(t *testing.T, in []byte, number uint64, end int64) {
		changes := pendingAfter(in, number, end)
		if changes == nil {
			return
		}
		fs := vfs.NewMem()
		m, err := fs.Map(pendingName, max(len(in)&^15, 512))
		require.NoError(t, err)
		h := halves(m)
		h[1].publish(append(h[1].begin(number, end), changes...))
		require.Equal(t, changes, pendingAfter(fs.Data(pendingName), number, end))
		require.Nil(t, pendingAfter(fs.Data(pendingName), number+1, end))
		require.Nil(t, pendingAfter(fs.Data(pendingName), number, end+1))
	})
}
