package stage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"iter"
)

// endOfEntries is the last line that AppendEntries writes. Without it the data is incomplete.
const endOfEntries = "end\n"

// AppendEntries appends the saved state of a package, such as scheduler.Scheduler.All: a line of
// JSON for each entry, after the checksum of the lines so far.
func AppendEntries[E any](dst []byte, entries iter.Seq[E]) ([]byte, error) {
	sum := uint32(0)
	for e := range entries {
		text, err := json.Marshal(e)
		if err != nil {
			return dst, fmt.Errorf("stage: write %T: %w", e, err)
		}
		sum = crc32.Update(sum, castagnoli, text)
		dst = fmt.Appendf(dst, "%08x %s\n", sum, text)
	}
	return append(dst, endOfEntries...), nil
}

// Entries returns an iterator over the entries that AppendEntries wrote. An error gives the byte at
// which the data is damaged or ends too early; it is yielded once and ends the iteration.
func Entries[E any](data []byte) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		sum, rest := uint32(0), data
		for string(rest) != endOfEntries {
			var e E
			line, after, _ := bytes.Cut(rest, []byte("\n"))
			written, text, _ := bytes.Cut(line, []byte(" "))
			sum = crc32.Update(sum, castagnoli, text)
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
