package archive

import (
	"encoding/binary"
)

// A pointer is what a snapshot keeps of a version until it is read: first the address of the
// content, by which pointers are sorted, and then all that describes the version.

// addressSize is the size of the address: file and offset, big endian.
const addressSize = fileSize + 8

// packItem appends a pointer. All of it is there, and not only the address, since looking the
// version up again would be a random access to the index for each document, which is what sorting
// avoids.
func packItem(dst, url []byte, f *found, content *entry) []byte {
	dst = binary.BigEndian.AppendUint32(dst, content.file)
	dst = binary.BigEndian.AppendUint64(dst, uint64(content.offset))
	dst = appendTime(dst, f.until)
	dst = appendBlock(dst, content.appendValue(nil))
	dst = appendBlock(dst, f.entry.appendValue(nil))
	return appendKey(dst, string(url), &f.entry)
}

// appendBlock puts the length before a value, of which there are two in a row.
func appendBlock(dst, block []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(block)))
	return append(dst, block...)
}

// cutBlock is the inverse of appendBlock. The file of pointers lies on a disk, and is not believed.
func cutBlock(src []byte) (block, rest []byte, ok bool) {
	n, size := binary.Uvarint(src)
	if size <= 0 || n > uint64(len(src)-size) {
		return nil, nil, false
	}
	return src[size : size+int(n)], src[size+int(n):], true
}

// unpack returns the version that a pointer describes.
func (a *Archive) unpack(item []byte) (v Version, err error) {
	if len(item) < addressSize+timeSize {
		return v, errEntry
	}
	content := entry{file: binary.BigEndian.Uint32(item),
		offset: int64(binary.BigEndian.Uint64(item[fileSize:]))}
	until := int64(binary.BigEndian.Uint64(item[addressSize:]) ^ 1<<63)
	contentValue, rest, ok1 := cutBlock(item[addressSize+timeSize:])
	value, key, ok2 := cutBlock(rest)
	if !ok1 || !ok2 {
		return v, errEntry
	}
	var e entry
	url, err := e.cutKey(key)
	if err == nil {
		err = e.cutValue(value)
	}
	if err == nil {
		err = content.cutValue(contentValue)
	}
	if err != nil {
		return v, err
	}
	v = a.describe(string(url), &e, until)
	v.Content = a.location(&content)
	v.from(&content)
	return v, nil
}
