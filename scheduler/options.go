package scheduler

import (
	"math"
	"time"
)

// Defaults that the zero [Options] stands for.
const (
	DefaultHostDelay     = 5 * time.Second
	DefaultLatencyFactor = 5
	DefaultBackoff       = 30 * time.Second
	DefaultMaxBackoff    = time.Hour
	DefaultMaxQueue      = 1_000_000
)

// Options sets how polite a [Scheduler] is and how much it holds. The zero Options suits a crawler
// that visits servers it knows nothing about.
type Options struct {
	// HostDelay is the least time between the starts of two leases on a host.
	// 0 means DefaultHostDelay, negative means none.
	HostDelay time.Duration

	// AddrDelay is the same for an address, whichever hosts live there.
	// 0 means as long as HostDelay, negative means none.
	AddrDelay time.Duration

	// GroupDelay is the same for a group, whichever hosts belong to it.
	// 0 means as long as HostDelay, negative means none.
	GroupDelay time.Duration

	// LatencyFactor times the latency of a host's last lease is the least delay before its next
	// one, so that a server that struggles is left in peace.
	// 0 means DefaultLatencyFactor, negative means that latency does not count.
	LatencyFactor float64

	// MaxDelay bounds what SetDelay, latency and back-off make of the delay of a host or address. It
	// never makes it shorter than HostDelay or AddrDelay, nor does it shorten a Retry-After.
	// 0 means no bound, and so does less.
	MaxDelay time.Duration

	// Backoff is the least delay of a host after a first failure. Each further one doubles it, each
	// success takes back half of the failures. The delay of an address is doubled by each failure,
	// six times at most.
	// 0 means DefaultBackoff, or twice HostDelay if that is longer; negative means no back-off.
	Backoff time.Duration

	// MaxBackoff bounds the delays that back-off leads to.
	// 0 means DefaultMaxBackoff, or Backoff if that is longer; negative means Backoff.
	MaxBackoff time.Duration

	// MaxPerHost is how many leases may be out on one host. With more than one, a delay counts from
	// the lease at first, so that the next lease need not wait for this one's end, and skipping
	// does not take it back.
	// 0 means 1, negative means no bound, which is 65535.
	MaxPerHost int

	// MaxPerAddr is the same for an address.
	// 0 means 1, negative means no bound, which is 65535.
	MaxPerAddr int

	// MaxPerGroup is the same for a group.
	// 0 means 1, negative means no bound, which is 65535.
	MaxPerGroup int

	// MaxQueue bounds the tasks that are queued; leased ones do not count.
	// 0 means DefaultMaxQueue, negative means as many as can be numbered, about 2e9.
	MaxQueue int

	// MaxHostQueue bounds the tasks that are queued for one host.
	// 0 means no bound but MaxQueue, and so does less.
	MaxHostQueue int
}

// normal returns o with defaults in place of zeros and zeros in place of what is off.
func (o Options) normal() Options {
	o.HostDelay = normalDelay(o.HostDelay, DefaultHostDelay)
	o.AddrDelay = normalDelay(o.AddrDelay, o.HostDelay)
	o.GroupDelay = normalDelay(o.GroupDelay, o.HostDelay)
	o.MaxDelay = max(o.MaxDelay, 0)
	if o.LatencyFactor == 0 {
		o.LatencyFactor = DefaultLatencyFactor
	}
	o.LatencyFactor = max(o.LatencyFactor, 0)
	o.Backoff = normalDelay(o.Backoff, max(DefaultBackoff, shared(int64(o.HostDelay), 2)))
	o.MaxBackoff = max(normalDelay(o.MaxBackoff, DefaultMaxBackoff), o.Backoff)
	if o.Backoff == 0 {
		o.MaxBackoff = 0
	}
	o.MaxPerHost = normalCount(o.MaxPerHost, 1, math.MaxUint16)
	o.MaxPerAddr = normalCount(o.MaxPerAddr, 1, math.MaxUint16)
	o.MaxPerGroup = normalCount(o.MaxPerGroup, 1, math.MaxUint16)
	// Tasks have numbers of 32 bits.
	o.MaxQueue = normalCount(o.MaxQueue, DefaultMaxQueue, math.MaxInt32)
	o.MaxHostQueue = normalCount(o.MaxHostQueue, math.MaxInt32, math.MaxInt32)
	return o
}

// normalDelay returns the default for 0, and none for less.
func normalDelay(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return max(d, 0)
}

// normalCount returns the default for 0, and the most for less.
func normalCount(n, byDefault, most int) int {
	switch {
	case n == 0:
		return byDefault
	case n < 0:
		return most
	default:
		return min(n, most)
	}
}
