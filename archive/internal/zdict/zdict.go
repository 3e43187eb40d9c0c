// Package zdict writes the dictionary of a zstd file, as in the IIPC's specification of zstd in WARC
// files.
package zdict

import "encoding/binary"

// Magic begins the skippable frame with the dictionary.
const Magic = "\x5d\x2a\x4d\x18"

// Append appends the frame that begins a file whose records need a dictionary.
func Append(dst, dict []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, Magic...), uint32(len(dict)))
	return append(dst, dict...)
}
