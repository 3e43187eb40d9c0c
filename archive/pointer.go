package archive

import (
	"encoding/binary"
)

// A pointer represents a version in a snapshot: the address of the content, by which pointers are
// sorted, and then the description of the version.

// addressSize is the size of the address: file and offset, big endian.
const addressSize = fileSize + 8

// packItem appends a pointer. It includes the whole description, since looking the version up again
// would be a random access to the index for each document, which sorting avoids.
func packItem(dst []byte, url string, e *entry, until int64) []byte {
	body := e.body()
	dst = binary.BigEndian.AppendUint32(dst, body.file)
	dst = binary.BigEndian.AppendUint64(dst, uint64(body.offset))
	dst = appendTime(dst, until)
	at := len(dst)
	dst = e.appendValue(append(dst, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return appendKey(dst, url, e)
}

// unpack returns the version that a pointer describes. The file of pointers is on disk, and not
// trusted.
func (a *Archive) unpack(item []byte) (v Version, err error) {
	const head = addressSize + timeSize + 4
	if len(item) < head {
		return v, errEntry
	}
	until := int64(binary.BigEndian.Uint64(item[addressSize:]) ^ 1<<63)
	size, rest := uint64(binary.BigEndian.Uint32(item[head-4:])), item[head:]
	if size > uint64(len(rest)) {
		return v, errEntry
	}
	var e entry
	url, err := e.cutKey(rest[size:])
	if err == nil {
		err = e.cutValue(rest[:size])
	}
	if err != nil {
		return v, err
	}
	return a.describe(string(url), &e, until), nil
}
