package message

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// whole has every field of every kind of item.
var whole = []Item{
	{Kind: Page, URL: "http://a.test/"},
	{
		Kind: Page, URL: "http://b.test/x?y=1", Depth: 3, Hops: 1,
		Addr: netip.MustParseAddr("192.0.2.7"), Delay: 90 * time.Second,
	},
	{
		Kind: Rules, URL: "https://c.test/robots.txt", For: "http://d.test/robots.txt",
		Addr: netip.MustParseAddr("2001:db8::1"),
	},
	{Kind: Answer, URL: "http://e.test/robots.txt", For: "http://e.test/robots.txt", Status: 302,
		Location: "http://f.test/robots.txt", Body: []byte("User-agent: *\nDisallow: /\xff\n")},
	{Kind: Located, URL: "g.test", Addr: netip.MustParseAddr("::ffff:192.0.2.1"), Delay: 1},
	{Kind: Visited, URL: "http://h.test/", Round: 4, Due: time.Unix(1e9, 0).UTC(), State: []byte("\x00s\xff"), Depth: 2},
	{Kind: Sitemap, URL: "http://i.test/s.xml", For: "i.test", LastMod: time.Unix(1, 0).UTC(), Again: true,
		Until: time.Unix(2e9, 0).UTC()},
}

func TestDecodingInvertsEncoding(t *testing.T) {
	got, err := Decode(Encode(nil, whole...))
	require.NoError(t, err)
	require.Equal(t, whole, got)
	none, err := Decode(Encode(nil))
	require.NoError(t, err)
	require.Empty(t, none)
}

// TestAPageIsSmall bounds the size of an item without the text of its URL.
func TestAPageIsSmall(t *testing.T) {
	it := Item{
		Kind: Page, URL: strings.Repeat("x", 80), Depth: 5, Addr: netip.MustParseAddr("192.0.2.7"),
	}
	require.Less(t, len(Encode(nil, it)), len(it.URL)+50)
}

func TestInvalidMessagesAreRejected(t *testing.T) {
	good := Encode(nil, whole...)
	for n := range good {
		if _, err := Decode(good[:n]); err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			continue
		}
		require.True(t, n == 0 || good[n-1] == '\n' || good[n] == '\n', "cut after %d bytes", n)
	}
	for name, data := range map[string]string{
		"an unknown kind":  fmt.Sprintf(`{"k":%d,"u":"x"}`, kinds),
		"no kind":          `{"u":"x"}`,
		"no JSON":          "x",
		"an address of no": `{"k":1,"a":"nowhere"}`,
	} {
		_, err := Decode([]byte(data))
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode(nil, whole...))
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := Decode(data)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		again, err := Decode(Encode(nil, items...))
		require.NoError(t, err)
		require.Len(t, again, len(items))
	})
}

func TestModulesHaveNames(t *testing.T) {
	for m := range modules {
		require.NotEmpty(t, m.String())
		parsed, err := ParseModule(m.String())
		require.NoError(t, err)
		require.Equal(t, m, parsed)
	}
	require.Equal(t, "module 200", Module(200).String())
}

// TestHashNeverChanges compares with constants. A change would make the partitions of older crawls
// unusable.
func TestHashNeverChanges(t *testing.T) {
	for key, want := range map[string]uint64{
		"":                    0xefd01f60ba992926,
		"a":                   0x82a2a958a9bece5b,
		"http://example.org/": 0x897f1a14f0496a53,
	} {
		require.Equal(t, want, Hash(key), "%q: %#x", key, Hash(key))
	}
}

func TestPartitionsAreEven(t *testing.T) {
	const keys, parts = 200_000, 16
	var count [parts]int
	r := rand.New(rand.NewPCG(1, 2))
	for range keys {
		var addr [4]byte
		for i := range addr {
			addr[i] = byte(r.Uint32())
		}
		count[AddrPart(netip.AddrFrom4(addr), parts)]++
	}
	for part, n := range count {
		require.InDelta(t, keys/parts, n, 0.04*keys/parts, "partition %d", part) // 4.5 sigma
	}
}

func TestAnAddressHasOnePartition(t *testing.T) {
	for _, forms := range [][2]string{{"192.0.2.1", "::ffff:192.0.2.1"}, {"fe80::1", "fe80::1%eth0"}} {
		for n := 1; n < 50; n++ {
			require.Equal(t, AddrPart(netip.MustParseAddr(forms[0]), n),
				AddrPart(netip.MustParseAddr(forms[1]), n))
		}
	}
}
