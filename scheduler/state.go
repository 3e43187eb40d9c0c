package scheduler

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"time"
)

// CorruptError says where and why data is no state.
type CorruptError struct {
	Offset int
	Reason string
}

// Error returns a message with the offset.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("scheduler: state: byte %d: %s", e.Offset, e.Reason)
}

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// These constants are on disk; see FORMAT.md. Do not change them; add a version.
const (
	stateMagic   = "SPNS"
	stateVersion = 1
	headerLen    = 44
	sumLen       = 4

	kindHost = 1
	kindAddr = 2
	hasRetry = 0x80 // a bit beside the kind
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendState appends to dst what a Scheduler that takes this one's place has to know in order to
// be polite, and returns the longer slice. It holds what is unusual: delays that were asked for,
// failures, latencies, Retry-After. That a host was visited a moment ago is not in it: most visits
// before a crash would be missing anyway, so that [Scheduler.LoadState] reckons with all. Hence its
// cost is that of the unusual hosts, and it may be called each second. It holds no tasks.
func (s *Scheduler[T]) AppendState(dst []byte, now time.Time) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, begin := &s.book, len(dst)
	dst = append(dst, stateMagic...)
	dst = append(dst, stateVersion, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(now.UnixNano()))
	for _, k := range []kind{aHost, anIPv4, aGroup} {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(b.delay[k]))
	}
	dst = append(dst, 0, 0, 0, 0)
	entries := uint32(0)
	for i := uint32(1); i < b.manners.used; i++ {
		if m := b.manners.at(i); m.owner != 0 && b.isUnusual(m) {
			dst = b.appendManner(dst, m, s.instant(now))
			entries++
		}
	}
	binary.LittleEndian.PutUint32(dst[begin+headerLen-4:], entries)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[begin:], castagnoli))
}

// isUnusual tells whether a manner is about politeness, not only about the order of tasks. An idle
// place whose delay has passed is as good as forgotten. Elsewhere the manner still counts then: for
// the next visit, which may be out already.
func (b *book) isUnusual(m *manner) bool {
	p := b.places.at(m.owner)
	forgotten := p.count == 0 && p.out == 0 && p.due <= b.now
	return m.asked != 0 || !forgotten && (m.slow != 0 || m.failures != 0 || m.retry > b.now)
}

// appendManner appends an entry, with times relative to now.
func (b *book) appendManner(dst []byte, m *manner, now int64) []byte {
	k := byte(kindHost)
	if b.places.at(m.owner).kind != aHost {
		k = kindAddr
	}
	if m.retry > now {
		k |= hasRetry
	}
	dst = b.appendKey(append(dst, k, m.failures), m.owner)
	dst = binary.AppendUvarint(dst, uint64(m.asked))
	dst = binary.AppendUvarint(dst, uint64(m.slow))
	if m.retry > now {
		dst = binary.AppendVarint(dst, saturated(m.retry, now))
	}
	return dst
}

// saturated returns t less now, within what an int64 holds. What never comes takes forever.
func saturated(t, now int64) int64 {
	d := t - now
	switch {
	case t == never:
		return never
	case now < 0 && t >= 0 && d < 0:
		return never
	case now > 0 && t < 0 && d > 0:
		return longAgo
	default:
		return d
	}
}

// LoadState makes a Scheduler that holds nothing as polite as one that wrote data must have been,
// whatever that did afterwards until it was killed. Nothing is known of the visits in between, so
// every host, address and group counts as visited at now, and waits for its delay as data says it
// is, or for its Retry-After if that is later. So the crawl starts with a break.
//
// What was learned after data was written, such as a Retry-After, is lost. If the clock of the
// machine was set back, the time since data was written counts as none. Data that is damaged or cut
// off is refused with a *[CorruptError], which leaves the Scheduler as it was.
func (s *Scheduler[T]) LoadState(data []byte, now time.Time) error {
	st, err := decodeState(data)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.book.known != [kinds]int{} {
		return errors.New("scheduler: state is for a Scheduler that holds nothing")
	}
	at := s.instant(now)
	saved := at - max(saturated(now.UnixNano(), st.saved), 0)
	if saved > at { // before the beginning of all time
		saved = longAgo
	}
	s.book.load(st, saved, at)
	s.alert()
	return nil
}

// load requires that nothing is known.
func (b *book) load(st savedState, saved, now int64) {
	b.advance(now)
	for k := range b.restarted {
		b.restarted[k] = later(b.now, max(b.delay[k], st.delay[k]))
	}
	for _, e := range st.entries {
		i := b.useKey(e)
		m := b.mannerOf(i)
		m.start = max(m.start, b.now)
		m.asked, m.slow, m.failures = e.asked, e.slow, e.failures
		if retry := sum(saved, e.retry); e.hasRetry && retry > b.now {
			m.retry = retry
		}
		b.redue(i)
	}
}

// useKey makes the place of an entry known.
func (b *book) useKey(e savedEntry) uint32 {
	if e.host {
		return b.use(aHost, e.key)
	}
	i, isNew := b.address(e.addr)
	b.freshen(i, isNew)
	return i
}

// sum is the inverse of saturated.
func sum(now, d int64) int64 {
	switch t := now + d; {
	case d == never || now > 0 && d > 0 && t < 0:
		return never
	case now < 0 && d < 0 && t >= 0:
		return longAgo
	default:
		return t
	}
}

// A savedState is what a state says.
type savedState struct {
	saved   int64 // wall clock
	delay   [kinds]int64
	entries []savedEntry
}

type savedEntry struct {
	host        bool
	key         string
	addr        netip.Addr
	failures    uint8
	asked, slow int64
	hasRetry    bool
	retry       int64 // since saved
}

// A decoder reads a state. After a first fault it reads zeros.
type decoder struct {
	data   []byte
	offset int
	err    *CorruptError
}

func (d *decoder) fail(reason string) {
	if d.err == nil {
		d.err = &CorruptError{Offset: d.offset, Reason: reason}
	}
}

// bytes returns the next n bytes, or as many zeros if that is few.
func (d *decoder) bytes(n uint64) []byte {
	if d.err != nil || n > uint64(len(d.data)-d.offset) {
		d.fail("cut off")
		return make([]byte, min(n, 8))
	}
	d.offset += int(n)
	return d.data[d.offset-int(n) : d.offset]
}

func (d *decoder) duration() int64 {
	v := int64(binary.LittleEndian.Uint64(d.bytes(8)))
	if v < 0 {
		d.fail("negative delay")
		return 0
	}
	return v
}

// uvarint reads a number in its shortest form that is no more than most.
func (d *decoder) uvarint(most uint64) uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.data[d.offset:])
	if n <= 0 || v > most || n > 1 && d.data[d.offset+n-1] == 0 {
		d.fail("bad number")
		return 0
	}
	d.offset += n
	return v
}

// varint reads a number in the zigzag form.
func (d *decoder) varint() int64 {
	v := d.uvarint(1<<64 - 1)
	return int64(v>>1) ^ -int64(v&1)
}

// decodeState checks all of data before anything is made of it.
func decodeState(data []byte) (st savedState, err error) {
	d := &decoder{data: data}
	if len(data) < headerLen+sumLen || string(data[:4]) != stateMagic {
		return st, &CorruptError{Reason: "no state"}
	}
	if data[4] != stateVersion || data[5]|data[6]|data[7] != 0 {
		return st, &CorruptError{Offset: 4, Reason: "unknown version"}
	}
	body := len(data) - sumLen
	if crc32.Checksum(data[:body], castagnoli) != binary.LittleEndian.Uint32(data[body:]) {
		return st, &CorruptError{Offset: body, Reason: "wrong checksum"}
	}
	d.data, d.offset = data[:body], 8
	st.saved = int64(binary.LittleEndian.Uint64(d.bytes(8)))
	host, addr, group := d.duration(), d.duration(), d.duration()
	st.delay = [kinds]int64{aHost: host, anIPv4: addr, anIPv6: addr, aGroup: group}
	count := binary.LittleEndian.Uint32(d.bytes(4))
	type name struct {
		host bool
		key  string
	}
	seen := make(map[name]bool)
	for range count {
		if d.err != nil {
			break
		}
		e := d.entry()
		if seen[name{e.host, e.key}] {
			d.fail("named twice")
		}
		seen[name{e.host, e.key}] = true
		st.entries = append(st.entries, e)
	}
	if d.err == nil && d.offset != body {
		d.fail("more than was counted")
	}
	if d.err != nil {
		return savedState{}, d.err
	}
	return st, nil
}

// entry reads one entry.
func (d *decoder) entry() (e savedEntry) {
	const most = 1<<63 - 1
	fixed := d.bytes(2)
	e.failures, e.hasRetry = fixed[1], fixed[0]&hasRetry != 0
	e.key = string(d.bytes(d.uvarint(most)))
	switch fixed[0] &^ hasRetry {
	case kindHost:
		e.host = true
	case kindAddr:
		var ok bool
		if e.addr, ok = addressOf(e.key); !ok {
			d.fail("no address")
		}
	default:
		d.fail("unknown kind")
	}
	e.asked, e.slow = int64(d.uvarint(most)), int64(d.uvarint(most))
	if e.hasRetry {
		e.retry = d.varint()
	}
	return e
}
