package stage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// entriesMagic begins saved entries, and textMagic those of another version.
const entriesMagic, textMagic = "SPNENTR3", "spinnere"

// AppendEntries appends the saved state of a package, such as scheduler.Scheduler.All: a stream of
// package durable, with the length of each entry and its JSON.
func AppendEntries[E any](dst []byte, entries iter.Seq[E]) ([]byte, error) {
	to := bytes.NewBuffer(dst)
	w := durable.NewStreamWriter(to, entriesMagic)
	for e := range entries {
		text, err := json.Marshal(e)
		if err != nil {
			return dst, fmt.Errorf("stage: write %T: %w", e, err)
		}
		w.Uvarint(uint64(len(text)))
		w.Buf = append(w.Buf, text...)
		w.Flush()
	}
	_, err := w.Close()
	return to.Bytes(), err
}

// Entries returns an iterator over the entries that AppendEntries wrote, in one or several calls. An
// error gives the byte at which the data is damaged or ends too early, or wraps durable.ErrVersion; it
// is yielded once and ends the iteration.
func Entries[E any](data []byte) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		in := bytes.NewReader(data)
		for first := true; first || in.Len() > 0; first = false {
			at := len(data) - in.Len()
			r := durable.NewStreamReader(in, entriesMagic, textMagic)
			for r.More() {
				text := make([]byte, r.Uvarint(uint64(len(data)), "bytes"))
				r.Fill(text)
				var e E
				if r.Err == nil && json.Unmarshal(text, &e) != nil {
					r.Fail("not an entry")
				}
				if r.Err == nil && !yield(e, nil) {
					return
				}
			}
			if r.Err != nil {
				var none E
				yield(none, fmt.Errorf("after byte %d: %w", at, r.Err))
				return
			}
		}
	}
}
