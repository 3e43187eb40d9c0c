package hostcache

import (
	"bytes"
	"io"
	"time"
	"unsafe"
)

// OpenReader is Open without the system's files.
func OpenReader[V any](r io.Reader, file string, codec Codec[V], o Options) (*Cache[V], error) {
	return open(r, file, codec, o)
}

// SetClockForward does to a Cache what it does to it that the wall clock is set forward: the time of
// its making is then another one, by that clock alone. The seconds of a time.Time with both clocks
// stand from bit 30 on.
func (c *Cache[V]) SetClockForward(by time.Duration) {
	*(*uint64)(unsafe.Pointer(&c.epoch)) -= uint64(by/time.Second) << 30
}

// WithChecksums returns a snapshot whose only block has a payload and, as its count, the first byte
// of that. With right checksums, a fuzzer gets past them.
func WithChecksums(payload []byte) []byte {
	var b bytes.Buffer
	// A bytes.Buffer reports no errors.
	e, _ := newEncoder(&b, fileHeader{kind: kindCodec})
	if len(payload) > 0 {
		e.count, e.payload = uint32(payload[0]), payload[1:]
		e.total = uint64(payload[0])
		_ = e.flush()
		e.payload = nil
	}
	_ = e.close()
	return b.Bytes()
}
