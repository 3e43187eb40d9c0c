// Package message encodes the messages between the modules of a crawl.
//
// A [Message] carries [Parcel] values of the partitions of one process to one partition, and a parcel
// a run of [Item] values of one partition: what the paper (Ueda et al., "A parallel distributed
// crawler of producer-consumer modules") calls CrawlingData, some dozens at a time. The encoding is
// canonical: what [Decode] accepts, [Message.Append] writes to the same bytes.
//
// The items of a partition for another one are numbered. The numbers make delivery exactly once,
// where the broker only guarantees at least once, and however items are cut into messages: see
// [Marks].
//
// Partitions are chosen by [Hash], which is the same on every machine and in every version.
package message

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"
)

// ErrCorrupt is wrapped by the errors of [Decode].
var ErrCorrupt = errors.New("message: corrupt")

// A Module is one kind of step of the crawl.
type Module uint8

// The modules. Their numbers travel in messages. Do not change them; add new ones at the end.
const (
	Seeder Module = iota // sends the seeds; it has no partitions of its own
	Dedupe               // lets each URL pass once, by h(URL)
	Hosts                // knows addresses and robots.txt, by h(host)
	Fetch                // schedules, fetches, stores and parses, by h(address)
	modules
)

// Partitioned returns the modules that have partitions, in the order of the flow.
func Partitioned() []Module { return []Module{Dedupe, Hosts, Fetch} }

var moduleNames = [modules]string{"seeder", "dedupe", "hosts", "fetch"}

// String returns the name of the module on the command line and in subjects.
func (m Module) String() string {
	if m < modules {
		return moduleNames[m]
	}
	return fmt.Sprintf("module %d", uint8(m))
}

// ParseModule reads the name of a module that has partitions.
func ParseModule(name string) (Module, error) {
	for _, m := range Partitioned() {
		if moduleNames[m] == name {
			return m, nil
		}
	}
	return 0, fmt.Errorf("module %q: want dedupe, hosts or fetch", name)
}

// A Kind is the type of an Item. Switchers use it to choose the next module.
type Kind uint8

// The kinds. Their numbers travel in messages. Do not change them; add new ones at the end.
const (
	Page    Kind = iota + 1 // a page to be fetched
	Rules                   // a robots.txt to be fetched
	Answer                  // the result of a request for a robots.txt
	Located                 // the result of a lookup
	Visited                 // the result of a visit, and when to visit the page again
	Sitemap                 // a sitemap to be fetched
	kinds
)

// An Item is one URL and what is known about it so far. It is not safe for concurrent use.
type Item struct {
	Kind  Kind
	URL   string // in canonical form; of Located the host's name
	Depth uint32 // links between the nearest seed and this URL
	Hops  uint32 // redirects since the last link, or since the robots.txt itself

	Addr  netip.Addr    // of the host, once it is known
	Delay time.Duration // that the site asks for between two requests; 0 if it does not

	For      string // the robots.txt that Rules and Answer are about, before redirects
	Status   uint32 // HTTP status of an Answer; 0 if there was none, 1 if the operator forbids the request
	Location string // where an Answer redirects to
	Body     string // of an Answer, cut to the maximum size of a robots.txt

	Round   uint32    // times that a plan has sent the page out before this one
	Due     time.Time // of Visited: when to visit the page again; zero means never. Whole seconds
	Until   time.Time // how long robots.txt is known to allow the page; zero if not known. Whole seconds
	LastMod time.Time // last change of the page according to a sitemap; zero if unknown. Whole seconds
	State   string    // state of the page from earlier visits, for module fetch
	Again   bool      // the page has passed before
}

// Clone returns an item that shares no memory with the other items of its message.
func (it Item) Clone() Item {
	it.URL, it.For = strings.Clone(it.URL), strings.Clone(it.For)
	it.Location, it.Body = strings.Clone(it.Location), strings.Clone(it.Body)
	it.State = strings.Clone(it.State)
	return it
}

// A Source is the sender of a message.
type Source struct {
	Module Module
	Part   uint32
}

// A Parcel is a run of items from one source. It is not safe for concurrent use.
type Parcel struct {
	From Source
	// First is the number of the first item. The items of From to a partition are numbered 1, 2, 3 …
	// 0 means that they have no numbers, since receiving them twice does no harm: seeds.
	First uint64
	// Head marks the first items of From that the broker had not acknowledged when this was sent.
	Head  bool
	Items []Item
}

// A Message is what one process has for one partition. It is not safe for concurrent use.
type Message struct{ Parcels []Parcel }

// version is the first byte of each message.
const version = 3

// maxItems bounds the number of items that a parcel may announce.
const maxItems = 1 << 16

// The bits of an item's second and third byte mark the fields that follow: those that are not zero.
// Kind and URL are always present, and isAgain is itself a field.
const (
	hasDepth = 1 << iota
	hasHops
	hasAddr
	hasDelay
	hasFor
	hasStatus
	hasLocation
	hasBody
	hasRound
	hasDue
	hasUntil
	hasLastMod
	hasState
	isAgain
	fields
)

// Append appends the encoded message to dst and returns the longer slice.
func (m *Message) Append(dst []byte) []byte {
	dst = AppendVersion(dst)
	for i := range m.Parcels {
		p := &m.Parcels[i]
		dst = p.AppendHeader(dst, len(p.Items))
		for j := range p.Items {
			dst = p.Items[j].Append(dst)
		}
	}
	return dst
}

// AppendVersion begins a message whose parcels the caller appends.
func AppendVersion(dst []byte) []byte { return append(dst, version) }

// AppendHeader appends what precedes the n items of a parcel, which were encoded before and are
// appended by the caller. When a parcel is sent again, it may have become the head.
func (p *Parcel) AppendHeader(dst []byte, n int) []byte {
	dst = append(dst, byte(p.From.Module))
	dst = binary.AppendUvarint(dst, uint64(p.From.Part))
	first := p.First << 1
	if p.Head {
		first |= 1
	}
	dst = binary.AppendUvarint(dst, first)
	return binary.AppendUvarint(dst, uint64(n))
}

// Append appends one encoded item to dst and returns the longer slice.
func (it *Item) Append(dst []byte) []byte {
	at := len(dst) + 1
	dst = append(dst, byte(it.Kind), 0, 0)
	has := uint16(0)
	dst = appendString(dst, it.URL)
	number := func(bit uint16, v uint64) {
		if v != 0 {
			has |= bit
			dst = binary.AppendUvarint(dst, v)
		}
	}
	text := func(bit uint16, s string) {
		if s != "" {
			has |= bit
			dst = appendString(dst, s)
		}
	}
	number(hasDepth, uint64(it.Depth))
	number(hasHops, uint64(it.Hops))
	if it.Addr.IsValid() {
		has |= hasAddr
		b, _ := it.Addr.WithZone("").MarshalBinary() // its error is always nil
		dst = append(append(dst, byte(len(b))), b...)
	}
	number(hasDelay, uint64(max(it.Delay, 0)))
	text(hasFor, it.For)
	number(hasStatus, uint64(it.Status))
	text(hasLocation, it.Location)
	text(hasBody, it.Body)
	number(hasRound, uint64(it.Round))
	number(hasDue, seconds(it.Due))
	number(hasUntil, seconds(it.Until))
	number(hasLastMod, seconds(it.LastMod))
	text(hasState, it.State)
	if it.Again {
		has |= isAgain
	}
	binary.LittleEndian.PutUint16(dst[at:], has)
	return dst
}

// seconds returns a time in Unix seconds; 0 for the zero time and for those before 1970.
func seconds(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(t.Unix(), 0))
}

// maxSeconds is the latest time in a message, far below the maximum of time.Time.
const maxSeconds = 1 << 40

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// Decode reads one message. Its strings share one copy of the data.
func Decode(data []byte) (m Message, err error) {
	d := decoder{rest: string(data)}
	if v := d.byte(); v != version && !d.failed {
		return m, fmt.Errorf("%w: version %d, want %d", ErrCorrupt, v, version)
	}
	for d.rest != "" && !d.failed {
		m.Parcels = append(m.Parcels, d.parcel())
	}
	if d.failed {
		return Message{}, fmt.Errorf("%w: byte %d of %d", ErrCorrupt, len(data)-len(d.rest), len(data))
	}
	return m, nil
}

// AppendItems appends encoded items to dst and returns the longer slice.
func AppendItems(dst []byte, items []Item) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(items)))
	for i := range items {
		dst = items[i].Append(dst)
	}
	return dst
}

// DecodeItems decodes the output of AppendItems.
func DecodeItems(data []byte) ([]Item, error) {
	d := decoder{rest: string(data)}
	items := d.items(d.uint(math.MaxInt32))
	if d.failed || d.rest != "" {
		return nil, fmt.Errorf("%w: byte %d of %d", ErrCorrupt, len(data)-len(d.rest), len(data))
	}
	return items, nil
}

func (d *decoder) parcel() (p Parcel) {
	p.From.Module = Module(d.byte())
	p.From.Part = uint32(d.uint(math.MaxUint32))
	first := d.uint(math.MaxUint64)
	p.First, p.Head = first>>1, first&1 == 1
	d.failed = d.failed || p.From.Module >= modules
	p.Items = d.items(d.uint(maxItems))
	return p
}

func (d *decoder) items(n uint64) []Item {
	if n > uint64(len(d.rest)) {
		d.failed = true
	}
	if d.failed {
		return nil
	}
	items := make([]Item, 0, n)
	for range n {
		if items = append(items, d.item()); d.failed {
			return nil
		}
	}
	return items
}

// A decoder reads from the front of its input. After the first error it returns zeros.
type decoder struct {
	rest   string
	failed bool
}

func (d *decoder) bytes(n uint64) string {
	if d.failed || n > uint64(len(d.rest)) {
		d.failed = true
		return ""
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); b != "" {
		return b[0]
	}
	return 0
}

// uint reads a number in its shortest form: one value has one encoding.
func (d *decoder) uint(most uint64) (v uint64) {
	for shift := 0; ; shift += 7 {
		b := d.byte()
		switch {
		case d.failed:
			return 0
		case shift == 63 && b > 1, b == 0 && shift > 0:
			d.failed = true
			return 0
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			break
		}
	}
	if v > most {
		d.failed = true
		return 0
	}
	return v
}

func (d *decoder) string() string { return d.bytes(d.uint(math.MaxInt32)) }

// item reads one item. A field that is announced but zero is an error.
func (d *decoder) item() (it Item) {
	it.Kind = Kind(d.byte())
	has := uint16(d.byte()) | uint16(d.byte())<<8
	it.URL = d.string()
	number := func(bit uint16, most uint64) (v uint64) {
		if has&bit != 0 {
			v = d.uint(most)
			d.failed = d.failed || v == 0
		}
		return v
	}
	text := func(bit uint16) (s string) {
		if has&bit != 0 {
			s = d.string()
			d.failed = d.failed || s == ""
		}
		return s
	}
	it.Depth = uint32(number(hasDepth, math.MaxUint32))
	it.Hops = uint32(number(hasHops, math.MaxUint32))
	if has&hasAddr != 0 {
		it.Addr = d.addr()
	}
	it.Delay = time.Duration(number(hasDelay, math.MaxInt64))
	it.For = text(hasFor)
	it.Status = uint32(number(hasStatus, math.MaxUint32))
	it.Location = text(hasLocation)
	it.Body = text(hasBody)
	it.Round = uint32(number(hasRound, math.MaxUint32))
	when := func(bit uint16) (t time.Time) {
		if s := number(bit, maxSeconds); s != 0 {
			t = time.Unix(int64(s), 0).UTC()
		}
		return t
	}
	it.Due, it.Until, it.LastMod = when(hasDue), when(hasUntil), when(hasLastMod)
	it.State, it.Again = text(hasState), has&isAgain != 0
	d.failed = d.failed || it.Kind == 0 || it.Kind >= kinds || has >= fields
	return it
}

func (d *decoder) addr() netip.Addr {
	switch b := d.bytes(uint64(d.byte())); len(b) {
	case 4:
		return netip.AddrFrom4([4]byte([]byte(b)))
	case 16:
		return netip.AddrFrom16([16]byte([]byte(b)))
	}
	d.failed = true
	return netip.Addr{}
}
