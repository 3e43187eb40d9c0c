package main

import (
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/revisit"
)

// minHostRoom is how many pages of a host are in hand at one time, at least. The scheduler needs only
// the next one; the others would keep pages of other hosts from their turn. What is more waits in the
// files. Where the delay is so short that these are through before some slots are over, there are
// more, lest the host waits for its pages.
const minHostRoom, slotsInHand = 1000, 5

// hostShare is the part of a host's time, as its delay makes it, that known pages may ask for. The
// rest is for pages that are new.
const hostShare = 0.8

// A hostBook knows what the crawl asks of each host: some 100 bytes for each. Its methods are safe
// for concurrent use.
type hostBook struct {
	delay time.Duration // between two visits, on the pages' clock
	room  int32         // for pages of a host in hand

	mu    sync.Mutex
	hosts map[string]*hostEntry
	until int64 // the latest until of all hosts
}

type hostEntry struct {
	pages  int32        // that were taken in hand at some time
	inHand int32        // of them, now
	until  int64        // when the last page that was put off is due, in Unix time
	load   revisit.Load // what its known pages ask for
	hints  int32        // visits that it was said to be worth
	right  int32        // of them, those that found a change
}

func newHostBook(delay, unit time.Duration) *hostBook {
	delay = max(delay, time.Millisecond)
	return &hostBook{
		delay: delay,
		room:  max(minHostRoom, int32(min(slotsInHand*unit/delay, 1e6))),
		hosts: map[string]*hostEntry{},
	}
}

// entry requires that b.mu is held.
func (b *hostBook) entry(host string) *hostEntry {
	e := b.hosts[host]
	if e == nil {
		e = &hostEntry{}
		b.hosts[host] = e
	}
	return e
}

// recall notes a page of an earlier run.
func (b *hostBook) recall(host string, interval time.Duration, putOff int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	e.pages++
	if interval > 0 {
		e.load.Book(interval)
	}
	e.until = max(e.until, putOff)
	b.until = max(b.until, putOff)
}

// admission is what becomes of a page that is due.
type admission struct {
	full   bool  // the host has as many pages as it may have; it is in hand all the same
	putOff int64 // when to try again, in Unix time; 0 if it is taken in hand
}

// take takes a page in hand. A host that has enough in hand is given its pages back one delay
// apart, from when it will be through with what it has: so each comes when there is time for it.
func (b *hostBook) take(host string, first bool, limit int, now time.Time) admission {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	if first {
		e.pages++
		if limit > 0 && int(e.pages) > limit {
			e.inHand++
			return admission{full: true}
		}
	}
	if e.inHand >= b.room {
		free := now.Unix() + int64(b.delay.Seconds()*float64(b.room))
		e.until = max(e.until, free) + int64(max(b.delay.Seconds(), 1))
		b.until = max(b.until, e.until)
		return admission{putOff: e.until}
	}
	e.inHand++
	return admission{}
}

// enter notes that a page is in hand, as take does.
func (b *hostBook) enter(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entry(host).inHand++
}

// leave notes that a page is no longer in hand.
func (b *hostBook) leave(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entry(host).inHand--
}

// book notes that a page will be visited at another interval than before, and returns by how much
// all intervals of its host have to grow (paper R §5.2).
func (b *hostBook) book(host string, before, after time.Duration) (stretch float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	if before > 0 {
		e.load.Cancel(before)
	}
	if after > 0 {
		e.load.Book(after)
	}
	return e.load.Stretch(hostShare * float64(24*time.Hour) / float64(b.delay))
}

// trust returns the share of a host's hints that were right, beginning at one half.
func (b *hostBook) trust(host string) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	return float64(e.right+1) / float64(e.hints+2)
}

// hinted notes whether a hint was right.
func (b *hostBook) hinted(host string, right bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(host)
	e.hints++
	if right {
		e.right++
	}
}

// pending says whether some page that was put off is not due yet.
func (b *hostBook) pending(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until >= now.Unix()
}

// of returns how many pages of a host were taken in hand at some time, and how many visits a day
// they ask for.
func (b *hostBook) of(host string) (pages int, perDay float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.hosts[host]; e != nil {
		return int(e.pages), e.load.PerDay()
	}
	return 0, 0
}

// count returns how many hosts there are.
func (b *hostBook) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.hosts)
}
