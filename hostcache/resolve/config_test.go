package resolve_test

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

func isNotFound(err error) bool {
	dns, ok := err.(*net.DNSError)
	return ok && dns.IsNotFound
}

func TestResolvConf(t *testing.T) {
	local := []string{"127.0.0.1:53", "[::1]:53"}
	for _, tt := range []struct {
		name, text string
		want       resolve.Conf
	}{
		{"empty", "", resolve.Conf{local, nil, 1, 5 * time.Second, 2, ""}},
		{"usual", "# generated\nnameserver 192.0.2.1\nnameserver 2001:db8::1\nsearch corp.test test\n" +
			"options ndots:2 timeout:3 attempts:4 edns0\n", resolve.Conf{
			[]string{"192.0.2.1:53", "[2001:db8::1]:53"}, []string{"corp.test.", "test."}, 2,
			3 * time.Second, 4, ""}},
		{"three servers at most", "nameserver 192.0.2.1\nnameserver 192.0.2.2\n" +
			"nameserver 192.0.2.3\nnameserver 192.0.2.4", resolve.Conf{
			[]string{one, two, three}, nil, 1, 5 * time.Second, 2, ""}},
		{"the last of domain and search", "domain a.test\nsearch B.Test. c.test ; and more", resolve.Conf{
			local, []string{"b.test.", "c.test."}, 1, 5 * time.Second, 2, ""}},
		{"flags", "options rotate use-vc no-aaaa", resolve.Conf{local, nil, 1, 5 * time.Second, 2, "4rt"}},
		{"bounds", "options ndots:99 timeout:999 attempts:99", resolve.Conf{
			local, nil, 15, 30 * time.Second, 5, ""}},
		{"nonsense", "nameserver\nnameserver here\nsearch ..\noptions ndots:x ndots timeout:-5\nwhat is it",
			resolve.Conf{local, nil, 1, time.Second, 2, ""}},
		{"an address with a zone", "nameserver fe80::1%eth0", resolve.Conf{
			[]string{"[fe80::1%eth0]:53"}, nil, 1, 5 * time.Second, 2, ""}},
	} {
		got := resolve.ParseConf(strings.NewReader(tt.text))
		flags := []byte(got.Flags)
		slices.Sort(flags)
		got.Flags = string(flags)
		require.Equal(t, tt.want, got, tt.name)
	}
}

func TestSearchList(t *testing.T) {
	const two = "search a.test b.test\noptions ndots:2"
	for _, tt := range []struct {
		conf, name string
		want       []string
	}{
		{"", "www", []string{"www."}},
		{"", "www.example.com", []string{"www.example.com."}},
		{"search a.test", "www", []string{"www.a.test.", "www."}},
		{"search a.test", "www.sub", []string{"www.sub.", "www.sub.a.test."}},
		{"search a.test", "www.", []string{"www."}},
		{two, "www.sub", []string{"www.sub.a.test.", "www.sub.b.test.", "www.sub."}},
		{two, "www.sub.x", []string{"www.sub.x.", "www.sub.x.a.test.", "www.sub.x.b.test."}},
		{two, "www.sub.onion", nil},
		{two, strings.Repeat("abcd.", 50) + "tt", []string{strings.Repeat("abcd.", 50) + "tt."}},
	} {
		require.Equal(t, tt.want, resolve.Names(strings.NewReader(tt.conf), tt.name), "%q %q", tt.conf, tt.name)
	}
}

// TestTheSystemsFiles has a resolver that reads files like the system's, and notices changes.
func TestTheSystemsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, sample.handler())
		n.serve(two, sample.handler())
		dir := t.TempDir()
		conf, hosts := filepath.Join(dir, "resolv.conf"), filepath.Join(dir, "hosts")
		require.NoError(t, os.WriteFile(conf, []byte("nameserver 192.0.2.1\nsearch example test\n"), 0o644))
		require.NoError(t, os.WriteFile(hosts, []byte("192.0.2.77 file.test short\nbad line\n"), 0o644))
		r := resolve.New(resolve.Options{Dial: n.dial})
		r.UseFiles(conf, hosts)

		addr, err := r.Addr(t.Context(), "short")
		require.NoError(t, err)
		require.Equal(t, "192.0.2.77", addr.String())
		require.Empty(t, n.questions())
		addr, err = r.Addr(t.Context(), "plain")
		require.NoError(t, err)
		require.Equal(t, "192.0.2.10", addr.String())
		var names []string
		for _, asked := range n.questions() {
			if strings.HasPrefix(asked, "udp 1 A ") {
				names = append(names, strings.TrimPrefix(asked, "udp 1 A "))
			}
		}
		require.Equal(t, []string{"plain.example.", "plain.test."}, names)

		require.NoError(t, os.WriteFile(conf, []byte("nameserver 192.0.2.2\noptions no-aaaa\n"), 0o644))
		require.NoError(t, os.WriteFile(hosts, []byte("192.0.2.78 short\n"), 0o644))
		time.Sleep(5 * time.Second)
		_, err = r.Addr(t.Context(), "both.test")
		require.NoError(t, err)
		require.Equal(t, []string{"udp 2 A both.test."}, n.questions())
		addr, err = r.Addr(t.Context(), "short")
		require.NoError(t, err)
		require.Equal(t, "192.0.2.78", addr.String())
		_, err = r.Addr(t.Context(), "file.test")
		require.True(t, isNotFound(err))

		require.NoError(t, os.WriteFile(conf, []byte("nameserver 192.0.2.2\noptions use-vc rotate\n"), 0o644))
		time.Sleep(5 * time.Second)
		n.questions()
		_, err = r.Addr(t.Context(), "plain.test")
		require.NoError(t, err)
		require.Contains(t, n.questions(), "tcp 2 A plain.test.")
	})
}

// TestHostsAreReadAgainWithoutAMiss: each name is in the file or in the cache.
func TestHostsAreReadAgainWithoutAMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, sample.handler())
		hosts := write(t, "hosts", "192.0.2.77 file.test\n")
		r := n.resolver(resolve.Options{})
		r.UseFiles(filepath.Join(t.TempDir(), "absent"), hosts)
		has := func(host, want string) {
			t.Helper()
			addr, err := r.Addr(t.Context(), host)
			require.NoError(t, err)
			require.Equal(t, want, addr.String())
		}
		has("file.test", "192.0.2.77")
		has("plain.test", "192.0.2.10")
		require.NoError(t, os.WriteFile(hosts, []byte("192.0.2.7 file.test\n192.0.2.8 plain.test\n"), 0o644))
		time.Sleep(5 * time.Second)
		has("file.test", "192.0.2.7")
		has("plain.test", "192.0.2.8")
	})
}

// TestFilesThatCannotBeReadAreReadAgain has a directory in the place of each file for a while, at the start and later.
// What was known before stays: only a file that does not exist is missing.
func TestFilesThatCannotBeReadAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf, hosts := write(t, "resolv.conf", "nameserver 192.0.2.1\n"), write(t, "hosts", "192.0.2.77 file.test\n")
		n := newNetwork(t, sample.handler())
		r := resolve.New(resolve.Options{Dial: n.dial})
		hide := func() {
			for _, file := range []string{conf, hosts} {
				require.NoError(t, os.Rename(file, file+"-away"))
				require.NoError(t, os.Mkdir(file, 0o755))
				info, err := os.Stat(file)
				require.NoError(t, err)
				if info.Size() > 30 { // nor does it look like another file, where directories have a size
					require.NoError(t, os.Truncate(file+"-away", info.Size()))
				}
				require.NoError(t, os.Chtimes(file, time.Unix(1, 0), time.Unix(1, 0)))
				require.NoError(t, os.Chtimes(file+"-away", time.Unix(1, 0), time.Unix(1, 0)))
			}
		}
		show := func() {
			for _, file := range []string{conf, hosts} {
				require.NoError(t, os.Remove(file))
				require.NoError(t, os.Rename(file+"-away", file))
			}
			time.Sleep(5 * time.Second)
		}
		known := func(host string) {
			t.Helper()
			_, err := r.Addr(t.Context(), host)
			require.NoError(t, err)
			addr, ok := r.Cached("file.test")
			require.True(t, ok)
			require.Equal(t, "192.0.2.77", addr.String())
		}
		hide()
		r.UseFiles(conf, hosts)
		show()
		known("plain.test")
		hide()
		time.Sleep(5 * time.Second)
		known("both.test")
		show()
		known("alias.test")
	})
}

// TestWithoutResolvConf uses package net, which knows how this system resolves names.
func TestWithoutResolvConf(t *testing.T) {
	r := resolve.New(resolve.Options{})
	r.UseFiles(filepath.Join(t.TempDir(), "absent"), filepath.Join(t.TempDir(), "absent"))
	// A name that no name server gives an address to: package net refuses it by itself (RFC 7686).
	_, err := r.Addr(t.Context(), "no-server-is-asked.onion")
	require.True(t, isNotFound(err), "%v", err)
}

func TestTwoTablesOfHosts(t *testing.T) {
	own := map[string][]netip.Addr{"both.test": addrs("192.0.2.1"), "own.test": addrs("192.0.2.2")}
	r := resolve.New(resolve.Options{Dial: noDial(t), Servers: []netip.AddrPort{}, Hosts: own})
	r.UseFiles(filepath.Join(t.TempDir(), "absent"), write(t, "hosts", "192.0.2.8 both.test file.test"))
	for host, want := range map[string]string{
		"both.test": "192.0.2.1", "own.test": "192.0.2.2", "file.test": "192.0.2.8",
	} {
		addr, err := r.Addr(t.Context(), host)
		require.NoError(t, err)
		require.Equal(t, want, addr.String())
	}
}

// TestTablesOfHostsAreSorted: the order is that of answers of a name server, and a mapped address is
// one of version 4.
func TestTablesOfHostsAreSorted(t *testing.T) {
	own := map[string][]netip.Addr{
		"own.test": addrs("2001:db8::1", "::ffff:192.0.2.1", "2001:db8::2", "192.0.2.2"),
	}
	r := resolve.New(resolve.Options{Servers: []netip.AddrPort{}, Hosts: own, Dial: noDial(t)})
	r.UseFiles(filepath.Join(t.TempDir(), "absent"), write(t, "hosts", "2001:db8::3 file.test\n192.0.2.3 file.test"))
	for _, tt := range []struct {
		network, host string
		want          []netip.Addr
	}{
		{"ip", "own.test", addrs("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2")},
		{"ip4", "own.test", addrs("192.0.2.1", "192.0.2.2")},
		{"ip6", "own.test", addrs("2001:db8::1", "2001:db8::2")},
		{"ip", "file.test", addrs("192.0.2.3", "2001:db8::3")},
	} {
		got, err := r.LookupNetIP(t.Context(), tt.network, tt.host)
		require.NoError(t, err)
		require.Equal(t, tt.want, got, "%s %s", tt.network, tt.host)
	}
	addr, err := r.Addr(t.Context(), "file.test")
	require.NoError(t, err)
	require.Equal(t, addrs("192.0.2.3")[0], addr)
}

func TestParseHosts(t *testing.T) {
	table, err := resolve.ParseHosts(strings.NewReader(
		"127.0.1.1 A.example b.example. # both\n\n# none\n::1 c.example\n::ffff:192.0.2.1\tA.example\n" +
			"0.0.0.0 0.0.0.0\n192.0.2.9 *.name good.example\nx"))
	require.ErrorContains(t, err, `line 7: want an address and names: "*.name" is not a name`) // it would be looked up
	require.Equal(t, map[string][]netip.Addr{
		"a.example": addrs("127.0.1.1", "192.0.2.1"), "b.example": addrs("127.0.1.1"),
		"c.example": addrs("::1"), "good.example": addrs("192.0.2.9"),
	}, table)
	table, err = resolve.ParseHosts(strings.NewReader("\nlocalhost 127.0.0.1\n192.0.2.1 a.test"))
	require.ErrorContains(t, err, "line 2: want an address and names")
	require.Len(t, table, 1, "the lines that are right")
	_, err = resolve.ParseHosts(strings.NewReader(strings.Repeat("x", 100_000)))
	require.Error(t, err)
	table, err = resolve.ParseHosts(strings.NewReader("192.0.2.9" + strings.Repeat(" b.test", 20_000) + "\n192.0.2.2 c.test"))
	require.NoError(t, err)
	require.Contains(t, table, "c.test", "behind a long line")
}

// FuzzParseHosts writes the result, and parses it again.
func FuzzParseHosts(f *testing.F) {
	f.Add("127.0.1.1 A.example b.example. # both\n::1 c.example\nx")
	f.Add("fe80::1%eth0 a\n::ffff:1.2.3.4 b")
	f.Fuzz(func(t *testing.T, text string) {
		table, _ := resolve.ParseHosts(strings.NewReader(text))
		var again strings.Builder
		for host, addrs := range table {
			require.Equal(t, strings.ToLower(host), host)
			for _, addr := range addrs {
				fmt.Fprintf(&again, "%v %s\n", addr, host)
			}
		}
		if strings.ContainsAny(again.String(), "#") {
			t.Skip() // zones of addresses may have any bytes
		}
		got, err := resolve.ParseHosts(strings.NewReader(again.String()))
		if strings.Contains(text, "%") {
			t.Skip()
		}
		require.NoError(t, err)
		require.Equal(t, table, got)
	})
}

// FuzzResolvConf checks that the settings of any file are within bounds.
func FuzzResolvConf(f *testing.F) {
	f.Add("nameserver 192.0.2.1\nsearch a.test b.test\noptions ndots:2 timeout:3", "www")
	f.Fuzz(func(t *testing.T, text, name string) {
		c := resolve.ParseConf(strings.NewReader(text))
		require.True(t, len(c.Servers) > 0 && len(c.Servers) <= 3)
		require.True(t, c.NDots >= 0 && c.NDots <= 15)
		require.True(t, c.Timeout >= time.Second && c.Timeout <= 30*time.Second)
		require.True(t, c.Attempts >= 1 && c.Attempts <= 5)
		names := resolve.Names(strings.NewReader(text), name)
		require.LessOrEqual(t, len(names), len(c.Search)+1)
		require.Contains(t, names, strings.TrimSuffix(name, ".")+".")
		require.Len(t, maps.Collect(slices.All(names)), len(names))
	})
}
