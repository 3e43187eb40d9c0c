package stage

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/pagerank"
)

// An order on disk is the file that [pagerank.URLs.WriteTo] wrote, and a log of what has happened since.
// To write the file takes a second for a million pages, for which other calls wait, so that is done when
// a crawl begins and ends. In between, Save appends to the log: a sequence of streams of package
// durable, with the events below. Numbers are uvarints. A URL that has an id is one more than that, others
// are 0, the length, and the text: applied in their order, the events assign the ids that they use.
//
// A log begins with the checksum of its file. If that differs, the process ended before it removed the
// log: what it says is in the file.
const (
	orderLogMagic = "SPNORDL2"

	eventFetched    = 0 // a page, how many links it has, and these
	eventDiscovered = 1 // a URL that had no id
	eventBase       = 2 // the first event: the CRC-32C of the file, 0 if there was none

	mostLogged = 1 << 20 // links of a page
)

// OrderLog returns the name of the log that belongs to a file.
func OrderLog(name string) string { return name + ".log" }

// An orderLog is where the events of an order go. A nil one ignores them. It is not safe for concurrent
// use.
type orderLog struct {
	name   string // of the file
	events []byte // since the last Save
	base   uint32 // checksum of the file
	size   int64  // of the log
	most   int64  // at which the file is written anew
	stale  bool   // the file has to be written before the log goes on
}

// OpenOrder returns the order that is saved in a file and its log, or an empty one. After damage it
// returns what precedes that in the log, or an empty order if it is in the file, with an error. With an
// error that wraps durable.ErrVersion, or is of the disk, the order is nil.
func OpenOrder(name string) (*Order, error) {
	o, log, err := readOrderFile(name)
	if o == nil {
		return nil, err
	}
	if err == nil {
		err = o.readLog(OrderLog(name), log.base)
		if errors.Is(err, durable.ErrVersion) || errors.As(err, new(*fs.PathError)) {
			return nil, err
		}
	}
	_, missing := os.Lstat(OrderLog(name))
	log.stale = err != nil || missing == nil
	o.log = log
	return o, err
}

// Save makes what has happened durable. It is called by one goroutine at a time, while others use the
// order. The first call, before the crawl begins, writes the file anew if there was a log.
func (o *Order) Save() error {
	o.mu.Lock()
	events := bytes.Clone(o.log.events)
	o.log.events = o.log.events[:0]
	o.mu.Unlock()
	if o.log.stale || o.log.size > o.log.most {
		return o.Checkpoint()
	}
	if len(events) == 0 {
		return nil
	}
	var stream bytes.Buffer
	w := durable.NewStreamWriter(&stream, orderLogMagic)
	if o.log.size == 0 {
		w.Buf = append(w.Buf, eventBase)
		w.Uvarint(uint64(o.log.base))
	}
	_, _ = w.Write(events)
	if _, err := w.Close(); err != nil {
		return err
	}
	o.log.stale = true // unless the write succeeds
	f, err := os.OpenFile(OrderLog(o.log.name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	n, err := f.Write(stream.Bytes())
	o.log.size += int64(n)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		o.log.stale = false
	}
	return err
}

// leastLog is the size up to which a log may grow however small the file is, and logShare times the
// size of the file is it for a large one.
const leastLog, logShare = 64 << 20, 8

// Checkpoint writes the file, and begins a new log. Other calls wait.
func (o *Order) Checkpoint() error {
	var size int64
	sum := crc32.New(castagnoli)
	o.log.stale = true // unless it succeeds: the events are gone
	o.mu.Lock()
	o.log.events = o.log.events[:0]
	o.mu.Unlock()
	err := ReplaceWith(o.log.name, func(w io.Writer) (err error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		size, err = o.ranks.WriteTo(io.MultiWriter(w, sum))
		return err
	})
	if err != nil {
		return err
	}
	if err := os.Remove(OrderLog(o.log.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	o.log.base, o.log.stale, o.log.size, o.log.most = sum.Sum32(), false, 0, max(leastLog, logShare*size)
	return nil
}

// readOrderFile reads the file, and begins its log.
func readOrderFile(name string) (*Order, *orderLog, error) {
	log := &orderLog{name: name, most: leastLog}
	empty := NewOrder(pagerank.NewURLs(OrderOptions()))
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, log, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	sum := crc32.New(castagnoli)
	all := bufio.NewReader(io.TeeReader(f, sum))
	ranks, err := readRanks(all)
	if errors.Is(err, durable.ErrVersion) {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		return empty, log, fmt.Errorf("%s: %w", name, err)
	}
	if _, err := io.Copy(io.Discard, all); err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		log.base, log.most = sum.Sum32(), max(leastLog, logShare*info.Size())
	}
	return NewOrder(ranks), log, err
}

// readRanks reads a file, if it is not in the form that earlier versions wrote.
func readRanks(r *bufio.Reader) (*pagerank.URLs, error) {
	const old = "spinneret order "
	if begin, _ := r.Peek(len(old)); string(begin) == old {
		return nil, fmt.Errorf("%w: it is of an earlier one", durable.ErrVersion)
	}
	return pagerank.ReadURLs(r, OrderOptions())
}

// CheckOrder reads a file without its log. A missing one is sound.
func CheckOrder(name string) error {
	_, _, err := readOrderFile(name)
	return err
}

// readLog applies the log, if there is one, and if it is that of a file with a checksum.
func (o *Order) readLog(name string, base uint32) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, durable.WriteSize)
	for first := true; ; first = false {
		if _, err := in.Peek(1); err == io.EOF {
			return nil
		}
		r := durable.NewStreamReader(in, orderLogMagic)
		if first && (r.Byte() != eventBase || r.Uvarint(math.MaxUint32, "a checksum") != uint64(base)) && r.Err == nil {
			return nil
		}
		for r.More() {
			o.apply(r)
		}
		if r.Err != nil {
			return fmt.Errorf("%s: %w", name, r.Err)
		}
	}
}

// apply applies one event.
func (o *Order) apply(r *durable.StreamReader) {
	switch kind := r.Byte(); kind {
	case eventFetched:
		url := readURL(r, o.ranks)
		var links []string
		for n := r.Uvarint(mostLogged, "links"); n > 0 && r.Err == nil; n-- {
			links = append(links, readURL(r, o.ranks))
		}
		if r.Err == nil {
			o.ranks.Fetched(url, links)
		}
	case eventDiscovered:
		if url := readURL(r, o.ranks); r.Err == nil {
			o.ranks.Discover(url)
		}
	default:
		r.Fail("an event of kind %d", kind)
	}
}

// readURL reads what orderLog.url wrote.
func readURL(r *durable.StreamReader, ranks *pagerank.URLs) string {
	known := uint64(ranks.Stats().Known)
	if id := r.Uvarint(known, "an id"); id > 0 {
		return ranks.URL(uint32(id - 1))
	}
	return string(r.Append(nil, int(r.Uvarint(math.MaxInt32, "bytes of a URL"))))
}

// fetched notes that a page was fetched.
func (l *orderLog) fetched(ranks *pagerank.URLs, page string, links []string) {
	if l == nil || len(links) > mostLogged {
		return
	}
	l.events = append(l.events, eventFetched)
	l.url(ranks, page)
	l.events = binary.AppendUvarint(l.events, uint64(len(links)))
	for _, link := range links {
		l.url(ranks, link)
	}
}

// discovered notes that a URL gets an id.
func (l *orderLog) discovered(ranks *pagerank.URLs, url string) {
	if l == nil {
		return
	}
	if _, known := ranks.ID(url); !known {
		l.events = append(l.events, eventDiscovered)
		l.url(ranks, url)
	}
}

func (l *orderLog) url(ranks *pagerank.URLs, url string) {
	if id, known := ranks.ID(url); known {
		l.events = binary.AppendUvarint(l.events, uint64(id)+1)
		return
	}
	l.events = binary.AppendUvarint(append(l.events, 0), uint64(len(url)))
	l.events = append(l.events, url...)
}
