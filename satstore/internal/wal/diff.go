package wal

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// The log stores the bytes that a visit has changed in a record, a fifth of its size. A diff begins
// with the new length. If the length is unchanged, alternating runs follow: the number of bytes to
// keep, and the bytes that replace the next ones. Otherwise it has the numbers of bytes to keep at
// the beginning and at the end, and the bytes between them.

// appendSized appends a diff with its length, which is one byte for nearly all.
func appendSized(dst, old, new []byte) []byte {
	start := len(dst)
	dst = appendDiff(append(dst, 0), old, new)
	n := len(dst) - start - 1
	if more := durable.UvarintSize(uint64(n)) - 1; more > 0 {
		dst = slices.Insert(dst, start+1, make([]byte, more)...)
	}
	binary.PutUvarint(dst[start:], uint64(n))
	return dst
}

// appendDiff appends the diff from old to new.
func appendDiff(dst, old, new []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(new)))
	if len(old) != len(new) {
		n := min(len(old), len(new))
		head := equalBytes(old[:n], new[:n])
		tail := 0
		for tail < n-head && old[len(old)-1-tail] == new[len(new)-1-tail] {
			tail++
		}
		dst = binary.AppendUvarint(dst, uint64(head))
		dst = binary.AppendUvarint(dst, uint64(tail))
		return append(dst, new[head:len(new)-tail]...)
	}
	for len(new) > 0 {
		n := equalBytes(old, new)
		dst = binary.AppendUvarint(dst, uint64(n))
		old, new = old[n:], new[n:]
		if len(new) == 0 {
			break
		}
		n = unequalBytes(old, new)
		dst = durable.AppendBytes(dst, new[:n])
		old, new = old[n:], new[n:]
	}
	return dst
}

// equalBytes returns the length of the common prefix of two slices of the same length.
func equalBytes(a, b []byte) int {
	i := 0
	for ; len(a)-i >= 8; i += 8 {
		x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:])
		if x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return i
}

// unequalBytes returns how many bytes to replace. It stops before four equal bytes; fewer are not
// worth another run.
func unequalBytes(a, b []byte) int {
	same := 0
	for i := range a {
		if a[i] != b[i] {
			same = 0
		} else if same++; same == 4 {
			return i - 3
		}
	}
	return len(a) - same
}

// ApplyDiff applies the diff of a decoded Move to the old data.
func ApplyDiff(old, diff []byte) (data []byte, ok bool) {
	d := durable.Decoder{B: diff}
	size := d.Length(MaxData)
	if d.Bad {
		return nil, false
	}
	if size != len(old) {
		n := min(size, len(old))
		head, tail := d.Length(n), d.Length(n)
		if d.Bad || head+tail > n {
			return nil, false
		}
		middle := d.Take(size - head - tail)
		data = append(append(make([]byte, 0, size), old[:head]...), middle...)
		return append(data, old[len(old)-tail:]...), !d.Bad && len(d.B) == 0
	}
	data = slices.Clone(old)
	for at := 0; at < size && !d.Bad; {
		if at += d.Length(size - at); at < size {
			at += copy(data[at:], d.Bytes(size-at))
		}
	}
	return data, !d.Bad && len(d.B) == 0
}
