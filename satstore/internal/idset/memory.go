package idset

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"runtime"
	"slices"
)

// A memory is a source of the entries of maps. If several maps have a key, the last one counts. It
// sorts one part at a time and yields in between, because callers may be waiting for the processor.
type memory struct {
	parts [256][]entry // by the first byte of the key
	part  int
	key   Key
	value [8]byte
}

type entry struct {
	key   Key
	value uint64
	age   int
}

const yieldEvery = 1000 // entries

func newMemory(maps []map[Key]uint64) *memory {
	m := &memory{part: -1}
	for age, some := range maps {
		n := 0
		for key, value := range some {
			m.parts[key[0]] = append(m.parts[key[0]], entry{key, value, age})
			if n++; n%yieldEvery == 0 {
				runtime.Gosched()
			}
		}
	}
	return m
}

// Next implements table.Source.
func (m *memory) Next() (key, value []byte, err error) {
	for m.part < 0 || len(m.parts[m.part]) == 0 {
		if m.part+1 == len(m.parts) {
			return nil, nil, nil
		}
		m.part++
		slices.SortFunc(m.parts[m.part], func(a, b entry) int {
			return cmp.Or(bytes.Compare(a.key[:], b.key[:]), cmp.Compare(b.age, a.age))
		})
		if len(m.parts[m.part]) >= yieldEvery {
			runtime.Gosched()
		}
	}
	part := m.parts[m.part]
	m.key = part[0].key
	binary.LittleEndian.PutUint64(m.value[:], part[0].value)
	for len(part) > 0 && part[0].key == m.key {
		part = part[1:]
	}
	m.parts[m.part] = part
	return m.key[:], m.value[:], nil
}
