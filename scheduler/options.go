package scheduler

import (
	"cmp"
	"math"
	"net/netip"
	"time"
)

// Options sets how polite a [Scheduler] is and how much it holds. The zero Options suits a crawler
// that visits servers it knows nothing about.
type Options struct {
	// HostDelay is the politeness delay of a host: the least time between the starts of two leases.
	// 0 means DefaultHostDelay, negative means none. With -1 alone, AddrDelay, LatencyFactor and
	// Backoff are off as well, and only Retry-After is obeyed: for tests on one's own machine.
	HostDelay time.Duration

	// AddrDelay is the same for an address, across all of its hosts.
	// 0 means the same as HostDelay, negative means none.
	AddrDelay time.Duration

	// GroupDelay is the same for a group, across all of its hosts.
	// 0 means the same as HostDelay, negative means none.
	GroupDelay time.Duration

	// LatencyFactor gives slow servers longer delays: the delay of a host is at least LatencyFactor
	// times the latency of its last visit. For an address, the smallest latency of its last three
	// visits counts, so that one slow page does not slow down its other hosts. The delay is at most
	// an hour, so that a latency that was measured wrongly does not take a host out for good.
	// 0 means DefaultLatencyFactor, or none if neither hosts nor addresses have a delay; negative
	// means that latency does not count.
	LatencyFactor float64

	// Backoff is the minimum delay of a host after its first failure. Each further failure doubles
	// it, each success halves the number of failures, and a day without visits resets it. A failure
	// also doubles the delay of the address, up to a factor of 64. Up to a tenth is added, which
	// differs between hosts and between Schedulers, so that crawlers do not come back together.
	// 0 means DefaultBackoff, or twice HostDelay if that is longer, or none if neither hosts nor
	// addresses have a delay; negative means no back-off.
	Backoff time.Duration

	// MaxBackoff bounds the delays that result from back-off.
	// 0 means DefaultMaxBackoff, or Backoff if that is longer; negative means Backoff.
	MaxBackoff time.Duration

	// MaxRetryAfter bounds how long a Retry-After is obeyed, counted from the end of the visit; up
	// to a tenth is added as for Backoff. An address is closed for its other hosts as well, but for
	// a minute at most, and twice as long for each failure there after the first that Backoff
	// counts: half an hour after six. Without back-off it remains a minute.
	// 0 means DefaultMaxRetryAfter, negative means unlimited.
	MaxRetryAfter time.Duration

	// LeaseTimeout is the time after which a lease without Done counts as lost. It then ends as a
	// failure, and its host, address and group become available. Its task is not queued again.
	// 0 means DefaultLeaseTimeout, negative means never.
	LeaseTimeout time.Duration

	// MaxPerHost is the number of leases on a host that may be outstanding. If the host has a
	// delay, the next lease requires that Lease.Arrived was called for all of them, and that the
	// delay has passed since. A first delay that is learned later counts from the last lease.
	// 0 means 1, negative means unlimited (32,767).
	MaxPerHost int

	// MaxPerAddr is the same for an address.
	// 0 means 1, negative means unlimited (32,767).
	MaxPerAddr int

	// MaxPerGroup is the same for a group.
	// 0 means 1, negative means unlimited (32,767).
	MaxPerGroup int

	// MaxQueue bounds the queued tasks. Leased tasks do not count.
	// 0 means DefaultMaxQueue, negative means unlimited (about 2e9).
	MaxQueue int

	// MaxHostQueue bounds the queued tasks of one host.
	// Zero or negative means that only MaxQueue applies.
	MaxHostQueue int

	// MaxAddrQueue bounds the queued tasks of all hosts of one address. Like the other bounds it is
	// one of Add: a host whose tasks are queued already may move to a full address.
	// Zero or negative means that only MaxQueue applies.
	MaxAddrQueue int

	// MaxGroupQueue bounds the queued tasks of all hosts of one group. With a group for each
	// registrable domain, it keeps a wildcard DNS entry from filling the queue.
	// Zero or negative means that only MaxQueue applies.
	MaxGroupQueue int

	// MaxIdleHosts bounds the idle hosts that are kept for their settings by SetHost and for their
	// failures. Hosts whose delay has not passed do not count: all are kept. If more addresses than
	// that are known, those of no host are not kept for their failures.
	// 0 means DefaultMaxIdleHosts, negative means unlimited.
	MaxIdleHosts int

	// Exempt reports whether an address has no delay of its own, because unrelated hosts share it,
	// as in a content delivery network. Several goroutines may call it at a time.
	// nil means none.
	Exempt func(netip.Addr) bool
}

// normal returns o with defaults for zeros, and with zeros for what is disabled.
func (o Options) normal() Options {
	o.HostDelay = normal(o.HostDelay, DefaultHostDelay, 0)
	o.AddrDelay = normal(o.AddrDelay, o.HostDelay, 0)
	o.GroupDelay = normal(o.GroupDelay, o.HostDelay, 0)
	if o.HostDelay == 0 && o.AddrDelay == 0 {
		o.Backoff = cmp.Or(o.Backoff, -1)
		o.LatencyFactor = cmp.Or(o.LatencyFactor, -1)
	}
	if o.LatencyFactor == 0 {
		o.LatencyFactor = DefaultLatencyFactor
	}
	o.LatencyFactor = max(o.LatencyFactor, 0)
	o.Backoff = normal(o.Backoff, max(DefaultBackoff, time.Duration(times(2, o.HostDelay))), 0)
	o.MaxBackoff = max(normal(o.MaxBackoff, DefaultMaxBackoff, 0), o.Backoff)
	if o.Backoff == 0 {
		o.MaxBackoff = 0
	}
	o.MaxRetryAfter = normal(o.MaxRetryAfter, DefaultMaxRetryAfter, Forever)
	o.LeaseTimeout = normal(o.LeaseTimeout, DefaultLeaseTimeout, Forever)
	o.MaxPerHost = normalCount(o.MaxPerHost, 1, pendingBit-1)
	o.MaxPerAddr = normalCount(o.MaxPerAddr, 1, pendingBit-1)
	o.MaxPerGroup = normalCount(o.MaxPerGroup, 1, pendingBit-1)
	// Tasks have numbers of 32 bits.
	o.MaxQueue = normalCount(o.MaxQueue, DefaultMaxQueue, math.MaxInt32)
	o.MaxHostQueue = normalCount(o.MaxHostQueue, math.MaxInt32, math.MaxInt32)
	o.MaxAddrQueue = normalCount(o.MaxAddrQueue, math.MaxInt32, math.MaxInt32)
	o.MaxGroupQueue = normalCount(o.MaxGroupQueue, math.MaxInt32, math.MaxInt32)
	o.MaxIdleHosts = normalCount(o.MaxIdleHosts, DefaultMaxIdleHosts, math.MaxInt32)
	return o
}

// normal returns the default for 0, and what a negative value stands for.
func normal[T int | time.Duration](v, byDefault, negative T) T {
	switch {
	case v == 0:
		return byDefault
	case v < 0:
		return negative
	default:
		return v
	}
}

// normalCount is normal for a number of which the negative values stand for the most.
func normalCount(n, byDefault, most int) int { return min(normal(n, byDefault, most), most) }
