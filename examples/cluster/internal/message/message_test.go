package message

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// whole is a message with every field of every kind of item.
var whole = Message{Parcels: []Parcel{{From: Source{Seeder, 0}, Items: []Item{}}, {
	From: Source{Fetch, 300}, First: 1 << 40, Head: true,
	Items: []Item{
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
			Location: "http://f.test/robots.txt", Body: "User-agent: *\nDisallow: /\n"},
		{Kind: Located, URL: "g.test", Addr: netip.MustParseAddr("::ffff:192.0.2.1"), Delay: 1},
		{Kind: Visited, URL: "http://h.test/", Round: 4, Due: time.Unix(1e9, 0).UTC(), State: "\x00s", Depth: 2},
		{Kind: Sitemap, URL: "http://i.test/s.xml", For: "i.test", LastMod: time.Unix(1, 0).UTC(), Again: true,
			Until: time.Unix(2e9, 0).UTC()},
	},
}}}

func TestDecodingInvertsEncoding(t *testing.T) {
	for name, m := range map[string]Message{
		"a message with all fields": whole,
		"a message without parcels": {},
		"the largest number":        {Parcels: []Parcel{{First: 1<<63 - 1, Items: []Item{}}}},
	} {
		got, err := Decode(m.Append(nil))
		require.NoError(t, err, name)
		require.Equal(t, m, got, name)
	}
}

func TestItemsMayBeEncodedBeforeTheHeader(t *testing.T) {
	data := AppendVersion(nil)
	for _, p := range whole.Parcels {
		var items []byte
		for i := range p.Items {
			items = p.Items[i].Append(items)
		}
		data = append(p.AppendHeader(data, len(p.Items)), items...)
	}
	require.Equal(t, whole.Append(nil), data)
	items := whole.Parcels[1].Items
	got, err := DecodeItems(AppendItems(nil, items))
	require.NoError(t, err)
	require.Equal(t, items, got)
	_, err = DecodeItems(append(AppendItems(nil, items), 0))
	require.ErrorIs(t, err, ErrCorrupt)
}

// TestAPageIsSmall bounds the size of an item without the text of its URL.
func TestAPageIsSmall(t *testing.T) {
	it := Item{
		Kind: Page, URL: strings.Repeat("x", 80), Depth: 5, Addr: netip.MustParseAddr("192.0.2.7"),
	}
	require.Len(t, it.Append(nil), len(it.URL)+10)
}

func TestInvalidMessagesAreRejected(t *testing.T) {
	good := whole.Append(nil)
	first := len((&Message{Parcels: whole.Parcels[:1]}).Append(nil))
	for n := range good {
		if n == 1 || n == first {
			continue // a whole message with fewer parcels
		}
		_, err := Decode(good[:n])
		require.ErrorIs(t, err, ErrCorrupt, "cut after %d bytes", n)
	}
	for name, data := range map[string][]byte{
		"another version":              append([]byte{2}, good[1:]...),
		"trailing bytes":               append(bytes.Clone(good), 0),
		"an unknown module":            {3, byte(modules), 0, 0, 0},
		"an unknown kind":              {3, 0, 0, 0, 1, byte(kinds), 0, 0, 0},
		"no kind":                      {3, 0, 0, 0, 1, 0, 0, 0, 0},
		"more items than bytes":        {3, 0, 0, 0, 0x7f},
		"a number that is not minimal": {3, 0, 0x80, 0, 0, 0},
		"a number of more than 64 bits": append([]byte{3, 0, 0},
			0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0),
		"a field that is present but zero": {3, 0, 0, 0, 1, 1, hasDepth, 0, 0, 0},
		"a text that is present but empty": {3, 0, 0, 0, 1, 1, hasBody, 0, 0, 0},
		"an unknown field":                 {3, 0, 0, 0, 1, 1, 0, 0x80, 0},
		"a time out of range": append([]byte{3, 0, 0, 0, 1, 1, 0, hasDue >> 8, 0},
			0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"an address of five bytes": {3, 0, 0, 0, 1, 1, hasAddr, 0, 0, 5, 1, 2, 3, 4, 5},
	} {
		_, err := Decode(data)
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
}

func FuzzDecodeIsTheInverseOfAppend(f *testing.F) {
	f.Add(whole.Append(nil))
	f.Add((&Message{Parcels: []Parcel{{From: Source{Hosts, 2}}}}).Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		require.Equal(t, data, m.Append(nil))
	})
}

func TestModulesHaveNames(t *testing.T) {
	for m := range modules {
		require.NotEmpty(t, m.String())
		parsed, err := ParseModule(m.String())
		if m == Seeder {
			require.Error(t, err, "%s has no partitions", m)
			continue
		}
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
