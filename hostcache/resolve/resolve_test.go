package resolve_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/spinneret-go/spinneret/hostcache"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// sample has all shapes of answers.
var sample = zone{
	"plain.test.": {a("plain.test.", "192.0.2.10", 300), a("plain.test.", "192.0.2.11", 600)},
	"both.test.":  {a("both.test.", "2001:db8::1", 200), a("both.test.", "192.0.2.12", 400)},
	"six.test.":   {a("six.test.", "2001:db8::2", 300)},
	"alias.test.": {
		cname("alias.test.", "Other.Test.", 120), cname("other.test.", "third.example.", 240),
		a("third.example.", "192.0.2.13", 3600),
	},
	"brief.test.":  {a("brief.test.", "192.0.2.14", 0)},
	"odd.test.":    {a("odd.test.", "192.0.2.14", 1<<31+5)},
	"long.test.":   {a("long.test.", "192.0.2.15", 1<<30)},
	"empty.test.":  {},
	"dangle.test.": {cname("dangle.test.", "gone.test.", 90)},
	"soa":          {soa("test.", 9000, 7000)},
}

func TestAnswersAreKeptForTheirTTL(t *testing.T) {
	for _, tt := range []struct {
		name  string
		host  string
		addrs []netip.Addr
		kept  time.Duration
	}{
		{"as long as the shortest record", "plain.test", addrs("192.0.2.10", "192.0.2.11"), 300},
		{"of both kinds of address", "both.test", addrs("192.0.2.12", "2001:db8::1"), 200},
		{"IPv6 alone", "six.test", addrs("2001:db8::2"), 300},
		{"aliases count", "alias.test", addrs("192.0.2.13"), 120},
		{"upper case is the same", "PLAIN.test", addrs("192.0.2.10", "192.0.2.11"), 300},
		{"not for a moment only", "brief.test", addrs("192.0.2.14"), 60},
		{"the highest bit means zero", "odd.test", addrs("192.0.2.14"), 60},
		{"nor for years", "long.test", addrs("192.0.2.15"), 24 * 3600},
		{"no such name: what the zone says", "none.test", nil, 7000},
		{"no address", "empty.test", nil, 7000},
		{"an alias of nothing", "dangle.test", nil, 90},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t, sample.handler())
				r := n.resolver(resolve.Options{})
				ask := func() {
					t.Helper()
					got, err := r.LookupNetIP(t.Context(), "ip", tt.host)
					require.Equal(t, tt.addrs, got)
					require.Equal(t, tt.addrs == nil, err != nil)
					if err != nil {
						require.EqualError(t, err, "lookup "+tt.host+": no such host")
						require.True(t, err.(*net.DNSError).IsNotFound)
					}
				}
				ask()
				require.NotEmpty(t, n.questions())
				time.Sleep(tt.kept*time.Second - time.Nanosecond)
				ask()
				require.Empty(t, n.questions(), "it is still known")
				addr, known := r.Cached(tt.host)
				require.Equal(t, tt.addrs != nil, known)
				if known {
					require.Equal(t, tt.addrs[0], addr)
				}
				time.Sleep(time.Nanosecond)
				_, known = r.Cached(tt.host)
				require.False(t, known)
				ask()
				require.NotEmpty(t, n.questions(), "it is asked for again")
			})
		})
	}
}

// TestTheMissingKindIsKeptWithTheOther: a host that has addresses is not queried again for those that it
// lacks, although its zone says so for a shorter time.
func TestTheMissingKindIsKeptWithTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, sample.handler())
		r := n.resolver(resolve.Options{})
		for range 2 {
			_, err := r.LookupNetIP(t.Context(), "ip6", "long.test")
			require.EqualError(t, err, "lookup long.test: no such host")
			require.Len(t, n.questions(), 2)
			time.Sleep(24*time.Hour - 1)
			_, err = r.LookupNetIP(t.Context(), "ip6", "long.test")
			require.Error(t, err)
			require.Empty(t, n.questions())
			time.Sleep(time.Nanosecond)
		}
	})
}

// TestBoundsOfTheTTL sets the options.
func TestBoundsOfTheTTL(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts resolve.Options
		host string
		kept time.Duration // 0: not at all
	}{
		{"a lower bound", resolve.Options{MinTTL: time.Hour}, "plain.test", time.Hour},
		{"an upper bound", resolve.Options{MaxTTL: 2 * time.Minute}, "plain.test", 2 * time.Minute},
		{"an upper bound of negatives", resolve.Options{MaxTTL: 10 * time.Minute}, "none.test",
			10 * time.Minute},
		{"always obeyed", resolve.Options{MinTTL: -1}, "brief.test", 0},
		{"always obeyed, if it is long", resolve.Options{MinTTL: -1}, "plain.test", 5 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t, sample.handler())
				r := n.resolver(tt.opts)
				_, _ = r.LookupNetIP(t.Context(), "ip", tt.host)
				require.NotEmpty(t, n.questions())
				if tt.kept > 0 {
					time.Sleep(tt.kept - 1)
					_, _ = r.LookupNetIP(t.Context(), "ip", tt.host)
					require.Empty(t, n.questions())
					time.Sleep(time.Nanosecond)
				}
				_, _ = r.LookupNetIP(t.Context(), "ip", tt.host)
				require.NotEmpty(t, n.questions())
			})
		})
	}
}

// TestNegativesNeedAnSOA has zones that do not say how long a name does not exist, or are not
// entitled to.
func TestNegativesNeedAnSOA(t *testing.T) {
	for name, tt := range map[string]struct {
		authorities []dnsmessage.Resource
		kept        time.Duration
	}{
		"none":                 {nil, time.Minute},
		"of another zone":      {[]dnsmessage.Resource{soa("other.example.", 9000, 9000)}, time.Minute},
		"of a similar zone":    {[]dnsmessage.Resource{soa("xample.test.", 9000, 9000)}, time.Minute},
		"of the root":          {[]dnsmessage.Resource{soa(".", 300, 9000)}, 5 * time.Minute},
		"of the name itself":   {[]dnsmessage.Resource{soa("a.example.test.", 9000, 300)}, 5 * time.Minute},
		"for a year":           {[]dnsmessage.Resource{soa("test.", 1<<25, 1<<25)}, 3 * time.Hour},
		"something before it":  {[]dnsmessage.Resource{a("ns.test.", "192.0.2.1", 1), soa("test.", 300, 300)}, 5 * time.Minute},
		"in upper case letter": {[]dnsmessage.Resource{soa("TEST.", 300, 300)}, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t, zone{"soa": tt.authorities}.handler())
				r := n.resolver(resolve.Options{})
				for _, left := range []time.Duration{tt.kept - 1, 1} {
					_, err := r.Addr(t.Context(), "a.example.test")
					require.Error(t, err)
					n.questions()
					_, err = r.Addr(t.Context(), "a.example.test")
					require.Error(t, err)
					require.Empty(t, n.questions())
					time.Sleep(left)
				}
				_, err := r.Addr(t.Context(), "a.example.test")
				require.Error(t, err)
				require.NotEmpty(t, n.questions())
			})
		})
	}
}

func TestOneQueryOfEachKindIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, func(q message) [][]byte {
			time.Sleep(time.Second)
			return sample.answer(q)
		})
		r := n.resolver(resolve.Options{})
		var wait sync.WaitGroup
		begun := time.Now()
		for range 1000 {
			wait.Go(func() {
				got, err := r.LookupNetIP(t.Context(), "ip", "both.test")
				if err != nil || len(got) != 2 {
					t.Error(got, err)
				}
			})
		}
		wait.Wait()
		require.Equal(t, time.Second, time.Since(begun), "both at the same time")
		asked := n.questions()
		slices.Sort(asked)
		require.Equal(t, []string{"udp 1 A both.test.", "udp 1 AAAA both.test."}, asked)
		require.EqualValues(t, 1, r.Stats().Loads)
	})
}

// TestQueriesInFlightAreBounded looks up many names at once.
func TestQueriesInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		n := newNetwork(t, func(q message) [][]byte {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second / 4)
			mu.Lock()
			running--
			mu.Unlock()
			return sample.answer(q)
		})
		r := n.resolver(resolve.Options{MaxQueries: 7})
		var wait sync.WaitGroup
		for i := range 100 {
			wait.Go(func() {
				_, err := r.Addr(t.Context(), fmt.Sprintf("%d.test", i))
				require.ErrorContains(t, err, "no such host")
			})
		}
		wait.Wait()
		require.Equal(t, 7, most)
		require.Len(t, n.questions(), 200, "waiting for a slot makes no half answers")
	})
}

// TestASilentDomainDelaysNoOther has many more names of it than queries in flight.
func TestASilentDomainDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, func(q message) [][]byte {
			if strings.HasSuffix(strings.ToLower(q.Questions[0].Name.String()), ".silent.test.") {
				return nil
			}
			return sample.answer(q)
		})
		r := n.resolver(resolve.Options{MaxQueries: 4})
		var wait sync.WaitGroup
		for i := range 40 {
			wait.Go(func() {
				_, err := r.Addr(t.Context(), fmt.Sprintf("%d.silent.test", i))
				require.ErrorIs(t, err, resolve.ErrUnreachable)
			})
		}
		synctest.Wait()
		begun := time.Now()
		_, err := r.Addr(t.Context(), "plain.test")
		require.NoError(t, err)
		require.NoError(t, r.Ping(t.Context()))
		require.Zero(t, time.Since(begun))
		wait.Wait()
		synctest.Wait()
		require.Zero(t, r.Lanes(), "they end with the last query")
	})
}

// TestCallsOfALookupAreBounded as queries are.
func TestCallsOfALookupAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		r := resolve.New(resolve.Options{MaxQueries: 7, Lookup: func(context.Context, string) (
			[]netip.Addr, time.Duration, error) {
			n := running.Add(1)
			defer running.Add(-1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			time.Sleep(time.Second)
			return addrs("192.0.2.1"), time.Hour, nil
		}})
		var wait sync.WaitGroup
		for i := range 100 {
			wait.Go(func() {
				_, err := r.Addr(t.Context(), fmt.Sprintf("%d.test", i))
				require.NoError(t, err)
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, err := r.Addr(ctx, "late.test")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		wait.Wait()
		require.EqualValues(t, 7, most.Load())
	})
}

// TestMemoryIsBounded looks up more names than fit.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	lookup := func(context.Context, string) ([]netip.Addr, time.Duration, error) {
		return addrs("192.0.2.1", "2001:db8::1"), time.Hour, nil
	}
	r := resolve.New(resolve.Options{Lookup: lookup, MaxBytes: 256 << 10})
	for i := range 5000 {
		_, err := r.Addr(t.Context(), fmt.Sprintf("%d.x%s.test", i, strings.Repeat("x", i%60)))
		require.NoError(t, err)
		require.LessOrEqual(t, r.Stats().Bytes, 256<<10)
	}
	require.Positive(t, r.Stats().Evicted)
}

func TestNetworksOfALookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNetwork(t, sample.handler()).resolver(resolve.Options{})
		for _, tt := range []struct {
			network, host string
			want          []netip.Addr
		}{
			{"ip", "both.test", addrs("192.0.2.12", "2001:db8::1")},
			{"ip4", "both.test", addrs("192.0.2.12")},
			{"ip6", "both.test", addrs("2001:db8::1")},
			{"ip6", "plain.test", nil},
			{"ip4", "six.test", nil},
			{"ip6", "192.0.2.1", nil},
			{"ip4", "192.0.2.1", addrs("192.0.2.1")},
		} {
			got, err := r.LookupNetIP(t.Context(), tt.network, tt.host)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.want == nil, err != nil && err.(*net.DNSError).IsNotFound)
		}
		for _, bad := range []string{"", "tcp", "ip5"} {
			_, err := r.LookupNetIP(t.Context(), bad, "both.test")
			require.ErrorAs(t, err, new(net.UnknownNetworkError))
		}
	})
}

func TestNamesThatNeedNoServer(t *testing.T) {
	hosts, err := resolve.ParseHosts(strings.NewReader("192.0.2.7 in.table\n2001:db8::7 in.table\n"))
	require.NoError(t, err)
	r := resolve.New(resolve.Options{Hosts: hosts, Servers: []netip.AddrPort{}, Dial: noDial(t)})
	r.UseFiles("", "") // ignore the files of this machine
	for host, want := range map[string][]netip.Addr{
		"192.0.2.1":                         addrs("192.0.2.1"),
		"2001:db8::1":                       addrs("2001:db8::1"),
		"[2001:db8::1]":                     addrs("2001:db8::1"),
		"::ffff:192.0.2.3":                  addrs("192.0.2.3"),
		"fe80::1%eth0":                      addrs("fe80::1%eth0"),
		"in.table":                          addrs("192.0.2.7", "2001:db8::7"),
		"In.Table.":                         addrs("192.0.2.7", "2001:db8::7"),
		"localhost":                         addrs("127.0.0.1", "::1"),
		"www.localhost":                     addrs("127.0.0.1", "::1"),
		"":                                  nil,
		".":                                 nil,
		"a..b":                              nil,
		".a":                                nil,
		"-a.test":                           nil,
		"a-.test":                           nil,
		"a.test-":                           nil,
		"a b.test":                          nil,
		"a.onion":                           nil,
		"a.onion.":                          nil,
		"bücher.test":                       nil,
		"1.2.3":                             nil,
		"300.1.1.1":                         nil,
		"[a.test]":                          nil,
		"[]":                                nil,
		"2001:db8::g":                       nil,
		"a\x00.test":                        nil,
		"a/b.test":                          nil,
		"127.0.0.1\n.test":                  nil,
		strings.Repeat("a", 64) + ".test":   nil,
		strings.Repeat("a.", 127) + "test":  nil,
		strings.Repeat("abcd.", 51) + "tes": nil,
	} {
		got, err := r.LookupNetIP(t.Context(), "ip", host)
		require.Equal(t, want, got, "%q", host)
		addr, known := r.Cached(host)
		require.Equal(t, want != nil, known, "%q", host)
		if want != nil {
			require.Equal(t, want[0], addr)
			continue
		}
		require.True(t, err.(*net.DNSError).IsNotFound, "%q", host)
		_, err = r.Addr(t.Context(), host)
		require.Error(t, err)
	}
}

func noDial(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
	return func(_ context.Context, network, address string) (net.Conn, error) {
		t.Errorf("dial %s %s", network, address)
		return nil, errors.New("no")
	}
}

func TestWhatIsSavedIsKnownAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "names")
		n := newNetwork(t, sample.handler())
		opts := resolve.Options{
			Servers: []netip.AddrPort{netip.MustParseAddrPort(one)}, Dial: n.dial,
		}
		first, err := resolve.Open(file, opts)
		require.NoError(t, err)
		_, err = first.Addr(t.Context(), "both.test")
		require.NoError(t, err)
		_, err = first.Addr(t.Context(), "none.test")
		require.Error(t, err)
		require.NoError(t, first.Save())
		n.questions()

		again, err := resolve.Open(file, opts)
		require.NoError(t, err)
		got, err := again.LookupNetIP(t.Context(), "ip", "both.test")
		require.NoError(t, err)
		require.Equal(t, addrs("192.0.2.12", "2001:db8::1"), got)
		_, err = again.Addr(t.Context(), "none.test")
		require.True(t, err.(*net.DNSError).IsNotFound)
		require.Empty(t, n.questions())

		require.Error(t, resolve.New(opts).Save(), "it has no file")
		torn, err := resolve.Open(write(t, "torn", "torn"), opts)
		require.ErrorIs(t, err, hostcache.ErrCorrupt)
		_, err = torn.Addr(t.Context(), "both.test")
		require.NoError(t, err)
		require.NoError(t, torn.Save())
		nothing, err := resolve.Open(t.TempDir(), opts)
		require.NotErrorIs(t, err, hostcache.ErrCorrupt, "a directory")
		require.Nil(t, nothing)
	})
}

// TestAnotherLookup plugs in a function.
func TestAnotherLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		down := errors.New("service unavailable")
		r := resolve.New(resolve.Options{Dial: noDial(t), Lookup: func(_ context.Context, host string) (
			[]netip.Addr, time.Duration, error) {
			calls++
			switch host {
			case "known.test":
				return addrs("2001:db8::1", "192.0.2.1", "::ffff:192.0.2.2"), 10 * time.Minute, nil
			case "empty.test":
				return nil, 10 * time.Minute, nil
			case "absent.test":
				return nil, 10 * time.Minute, &net.DNSError{Err: "NXDOMAIN", Name: host, IsNotFound: true}
			}
			return nil, 0, down
		}})
		for range 2 {
			got, err := r.LookupNetIP(t.Context(), "ip", "known.test")
			require.NoError(t, err)
			require.Equal(t, addrs("192.0.2.1", "192.0.2.2", "2001:db8::1"), got)
			for _, host := range []string{"empty.test", "absent.test"} {
				_, err = r.Addr(t.Context(), host)
				require.True(t, err.(*net.DNSError).IsNotFound)
			}
		}
		require.Equal(t, 3, calls)
		for range 2 {
			_, err := r.Addr(t.Context(), "down.test")
			require.ErrorIs(t, err, down)
			require.False(t, err.(*net.DNSError).IsNotFound)
		}
		require.Equal(t, 5, calls, "a failure is not kept")
		time.Sleep(10 * time.Minute)
		_, err := r.Addr(t.Context(), "known.test")
		require.NoError(t, err)
		require.Equal(t, 6, calls)
		require.ErrorIs(t, r.Ping(t.Context()), down)
	})
}

// TestManyAddresses keeps some of each kind.
func TestManyAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var records []dnsmessage.Resource
		for i := range 20 {
			records = append(records, a("many.test.", fmt.Sprintf("192.0.2.%d", 100+i), 300),
				a("many.test.", fmt.Sprintf("2001:db8::%d", 100+i), 300))
		}
		r := newNetwork(t, zone{"many.test.": records}.handler()).resolver(resolve.Options{})
		got, err := r.LookupNetIP(t.Context(), "ip", "many.test")
		require.NoError(t, err)
		require.Equal(t, addrs("192.0.2.100", "192.0.2.101", "192.0.2.102", "192.0.2.103",
			"2001:db8::100", "2001:db8::101"), got)
	})
}

func TestCachedLookupsAllocateNothing(t *testing.T) {
	r := resolve.New(resolve.Options{Lookup: func(context.Context, string) ([]netip.Addr, time.Duration, error) {
		return addrs("192.0.2.1", "2001:db8::1"), time.Hour, nil
	}})
	_, err := r.Addr(t.Context(), "www.example.com")
	require.NoError(t, err)
	ctx, found := t.Context(), 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		got, _ := r.LookupNetIP(ctx, "ip", "www.example.com")
		found += len(got)
		_, _ = r.Addr(ctx, "www.example.com")
		_, _ = r.Cached("www.example.com")
	}))
	require.Equal(t, 202, found)
}
