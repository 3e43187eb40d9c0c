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

// An order on disk is the file that [Order.WriteTo] wrote, and a log of what has happened since. To
// write the file takes a second for a million pages, for which other calls wait, so that is done when
// a crawl begins and ends. In between, Save appends to the log: a sequence of streams of package
// durable, with the events below. Numbers are uvarints.
//
// A log begins with the checksum of its file. If that differs, the process ended before it removed the
// log: what it says is in the file.
const (
	orderLogMagic = "SPNORDL1"

	eventURL   = 0 // a URL gets the next number: its length, and the URL
	eventLinks = 1 // the links of a page: its number, how many, and their numbers
	eventDone  = 2 // a visit has ended: the number of the page
	eventBase  = 3 // the first event: the CRC-32C of the file, 0 if there was none
)

// OrderLog returns the name of the log that belongs to a file.
func OrderLog(name string) string { return name + ".log" }

// An orderLog is where the events of an order go. It is not safe for concurrent use.
type orderLog struct {
	name   string // of the file
	events []byte // since the last Save
	base   uint32 // checksum of the file
	size   int64  // of the log
	most   int64  // at which the file is written anew
	stale  bool   // the file has to be written before the log goes on
}

// OpenOrder returns the order that is saved in a file and its log, or an empty one with a new frontier. After damage it
// returns what precedes that in the log, or an empty order if it is in the file, with an error. With an
// error that wraps durable.ErrVersion, or is of the disk, the order is nil.
func OpenOrder(name string, frontier func(pagerank.Options) *pagerank.Frontier) (*Order, error) {
	o, log, err := readOrderFile(name, frontier)
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
		size, err = o.WriteTo(io.MultiWriter(w, sum))
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
func readOrderFile(
	name string, frontier func(pagerank.Options) *pagerank.Frontier,
) (*Order, *orderLog, error) {
	log := &orderLog{name: name, most: leastLog}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return NewOrder(frontier), log, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	sum := crc32.New(castagnoli)
	all := io.TeeReader(f, sum)
	o, err := ReadOrder(all)
	if errors.Is(err, durable.ErrVersion) {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		return NewOrder(frontier), log, fmt.Errorf("%s: %w", name, err)
	}
	if _, err := io.Copy(io.Discard, all); err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		log.base, log.most = sum.Sum32(), max(leastLog, logShare*info.Size())
	}
	return o, log, err
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
	page := func() uint32 { return uint32(r.Uvarint(uint64(max(len(o.pages), 1)-1), "a page")) }
	switch kind := r.Byte(); kind {
	case eventURL:
		url := make([]byte, r.Uvarint(longestURL, "bytes of a URL"))
		r.Fill(url)
		if r.Err == nil && len(o.pages) < MaxOrdered {
			o.idOf(string(url))
		}
	case eventLinks:
		id := page()
		targets := make([]uint32, r.Uvarint(mostLogged, "links"))
		for i := range targets {
			targets[i] = page()
		}
		if r.Err == nil && len(o.pages) > 0 {
			o.pages[id].fetched = true
			o.frontier.Fetched(id, targets)
		}
	case eventDone:
		if id := page(); r.Err == nil && len(o.pages) > 0 {
			o.pages[id].at = isDone
		}
	default:
		r.Fail("an event of kind %d", kind)
	}
}

// mostLogged bounds the links of a page in the log, and so the memory that a forged number takes.
const mostLogged = 1 << 20

// note adds an event to the log, if the order has one. It requires that o.mu is held.
func (o *Order) note(kind byte, numbers ...uint32) {
	if o.log == nil {
		return
	}
	o.log.events = append(o.log.events, kind)
	for _, n := range numbers {
		o.log.events = binary.AppendUvarint(o.log.events, uint64(n))
	}
}
