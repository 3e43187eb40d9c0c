package stage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// endOfEntries is the last line that AppendEntries writes. Without it the data is incomplete.
const endOfEntries = "end\n"

// The first line. Version 1 had none.
const (
	entriesKind    = "spinneret entries"
	entriesVersion = 2
)

// AppendEntries appends the saved state of a package, such as scheduler.Scheduler.All: a line with
// the version, and a line of JSON for each entry, after the checksum of the entries so far.
func AppendEntries[E any](dst []byte, entries iter.Seq[E]) ([]byte, error) {
	dst = append(dst, formLine(entriesKind, entriesVersion)...)
	sum := uint32(0)
	for e := range entries {
		text, err := json.Marshal(e)
		if err != nil {
			return dst, fmt.Errorf("stage: write %T: %w", e, err)
		}
		sum = durable.SumOn(sum, text)
		dst = fmt.Appendf(dst, "%08x %s\n", sum, text)
	}
	return append(dst, endOfEntries...), nil
}

// Entries returns an iterator over the entries that AppendEntries wrote, in one or several calls. An
// error gives the byte at which the data is damaged or ends too early, or wraps durable.ErrVersion; it
// is yielded once and ends the iteration.
func Entries[E any](data []byte) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var e E
		rest := data
		for first := true; first || len(rest) > 0; first = false {
			line, after, _ := bytes.Cut(rest, []byte("\n"))
			if err := checkForm(string(line)+"\n", entriesKind, entriesVersion); err != nil {
				if errors.Is(err, errForm) && first && isVersion1(data) {
					err = fmt.Errorf("%w: %s 1", durable.ErrVersion, entriesKind)
				}
				yield(e, fmt.Errorf("byte %d: %w", len(data)-len(rest), err))
				return
			}
			rest = after
			for sum, ended := uint32(0), false; ; {
				if rest, ended = bytes.CutPrefix(rest, []byte(endOfEntries)); ended {
					break
				}
				var e E
				line, after, _ := bytes.Cut(rest, []byte("\n"))
				written, text, _ := bytes.Cut(line, []byte(" "))
				sum = durable.SumOn(sum, text)
				if string(written) != fmt.Sprintf("%08x", sum) || json.Unmarshal(text, &e) != nil {
					yield(e, fmt.Errorf("byte %d: damaged or cut off", len(data)-len(rest)))
					return
				}
				if !yield(e, nil) {
					return
				}
				rest = after
			}
		}
	}
}

// isVersion1 reports whether data begins with a sound entry, or has none.
func isVersion1(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	written, text, _ := bytes.Cut(line, []byte(" "))
	return string(data) == endOfEntries ||
		json.Valid(text) && string(written) == fmt.Sprintf("%08x", durable.Sum(text))
}
