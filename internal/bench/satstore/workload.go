//go:build linux

package main

import (
	"encoding/binary"
	"math"
	"sort"
)

// A workload follows the paper: records are visited repeatedly, each at its own interval. The
// paper's logs are not public. Intervals are drawn from f(t) ~ t / (t+8)^1.7 for t from 1 to 9600
// hours, which matches the figures that the paper reports. In an hour 0.74 % of the records are
// due, in a day 9.4 %. Less than a tenth of the visits go to records with an interval of one hour,
// and 4 % of the records have intervals of up to a day.
type workload struct {
	records  int
	hours    int64 // of a slot
	horizon  int64 // slots
	interval []float64
}

const horizonHours = 9600

func newWorkload(records int, hours int64) *workload {
	w := &workload{records: records, hours: hours, horizon: horizonHours / hours}
	sum := 0.0
	for t := 1.0; t <= horizonHours; t++ {
		sum += t / math.Pow(t+8, 1.7)
		w.interval = append(w.interval, sum)
	}
	return w
}

// mix is a bijection that looks random (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// plan returns the interval of a record and its first due time, both in slots.
func (w *workload) plan(record int) (interval, first int64) {
	r := mix(uint64(record))
	at := float64(r>>11) / (1 << 53) * w.interval[horizonHours-1]
	hours := int64(sort.SearchFloat64s(w.interval, at)) + 1
	interval = (hours + w.hours - 1) / w.hours
	return interval, 1 + int64(mix(r)%uint64(interval))
}

// url appends a URL: 63.7 bytes on average, with similarities like those of URLs on one host.
func (w *workload) url(dst []byte, record int) []byte {
	r := mix(uint64(record) ^ 0x5bd1e995)
	dst = append(dst, "https://www."...)
	dst = appendWord(dst, mix(r%1_000_000), 6+int(r>>8%8))
	dst = append(dst, ".example/"...)
	dst = appendWord(dst, mix(r%1_000_000+r>>60), 8)
	dst = append(dst, '/')
	dst = appendWord(dst, mix(uint64(record)), 13)
	dst = append(dst, '-')
	return appendWord(dst, mix(r), 1+int(r>>32%20))
}

func appendWord(dst []byte, r uint64, n int) []byte {
	for range n {
		dst = append(dst, "abcdefghijklmnopqrstuvwxyz012345"[r%32])
		if r >>= 5; r < 32 {
			r = mix(r)
		}
	}
	return dst
}

// These are the fields that a visit needs or changes.
const (
	atInterval = 0
	atVisits   = 4
	atVisited  = 8
	atStable   = 12
	atSum      = 16 // checksum of the page, 16 bytes
	fieldsEnd  = 32
)

// data appends the fixed part of a record.
func (w *workload) data(dst []byte, record int, interval int64) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, fixedBytes)...)
	binary.LittleEndian.PutUint32(dst[start+atInterval:], uint32(interval))
	r := mix(uint64(record))
	for at := start + atSum; at+8 <= len(dst); at += 8 {
		r = mix(r)
		if at >= start+fieldsEnd && at < start+64 {
			continue // flags, dates and counters, which differ little between records
		}
		binary.LittleEndian.PutUint64(dst[at:], r)
	}
	return dst
}

// visit updates a record's fields for a visit in a slot: half of the pages have changed.
func visit(data []byte, slot int64) (next int64) {
	visits := binary.LittleEndian.Uint32(data[atVisits:]) + 1
	binary.LittleEndian.PutUint32(data[atVisits:], visits)
	binary.LittleEndian.PutUint32(data[atVisited:], uint32(slot))
	r := mix(uint64(visits)<<32 | uint64(slot))
	if r%2 == 0 {
		for at := atSum; at < fieldsEnd; at += 8 {
			r = mix(r + binary.LittleEndian.Uint64(data[at:]))
			binary.LittleEndian.PutUint64(data[at:], r)
		}
	} else {
		binary.LittleEndian.PutUint32(data[atStable:], uint32(slot))
	}
	return slot + int64(binary.LittleEndian.Uint32(data[atInterval:]))
}

// dues returns the records that are due in each of the first slots, in order. It replaces the event
// queue that an engine without slots would need, whose cost is not measured.
func (w *workload) dues(slots int) [][]int32 {
	due := make([][]int32, slots)
	for i := range w.records {
		interval, first := w.plan(i)
		for slot := first; slot <= int64(slots); slot += interval {
			due[slot-1] = append(due[slot-1], int32(i))
		}
	}
	return due
}

// meanBytes returns the average size of a record, with its URL.
func (w *workload) meanBytes() float64 {
	const sample = 10_000
	n := 0
	for i := range sample {
		n += len(w.url(nil, i))
	}
	return fixedBytes + float64(n)/sample
}

// key returns the fingerprint of a record, its key in the trees.
func key(record int32) (k [16]byte) {
	r := mix(uint64(record) ^ 0x2545f4914f6cdd1d)
	binary.BigEndian.PutUint64(k[:], r)
	binary.BigEndian.PutUint64(k[8:], mix(r))
	return k
}
