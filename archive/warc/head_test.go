package warc

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	someID    = ID{0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x42, 0xd3, 0xa4, 0x56, 1, 2, 3, 4, 5, 6}
	otherID   = ID{15: 0xff}
	someTime  = time.Date(2026, 11, 3, 4, 5, 6, 7_008_999, time.FixedZone("", 3600))
	emptySHA1 = [20]byte{
		0xda, 0x39, 0xa3, 0xee, 0x5e, 0x6b, 0x4b, 0x0d, 0x32, 0x55,
		0xbf, 0xef, 0x95, 0x60, 0x18, 0x90, 0xaf, 0xd8, 0x07, 0x09,
	}
)

func TestHeaderBytes(t *testing.T) {
	full := Head{
		Type: "response", ID: someID, ConcurrentTo: otherID, Date: someTime, RefersTo: otherID,
		RefersToURI: "http://b.test/", RefersToDate: someTime, Profile: ProfileIdentical,
		Filename: "f.warc.gz", TargetURI: "http://a.test/?q=ä",
		Addr: netip.MustParseAddr("2001:db8::1"), Payload: &emptySHA1, Truncated: "time",
		WarcinfoID: otherID, Protocols: []string{"h2", "tls/1.3"},
		CipherSuite: "TLS_AES_128_GCM_SHA256", ContentType: "application/http;msgtype=response",
		Extra: []Field{{"A", "b"}}, block: emptySHA1, length: 1 << 40,
	}
	tests := []struct {
		name string
		h    Head
		want string
	}{
		{"every field once, in this order", full, "WARC/1.1\n" +
			"WARC-Type: response\n" +
			"WARC-Record-ID: <urn:uuid:123e4567-e89b-42d3-a456-010203040506>\n" +
			"WARC-Warcinfo-ID: <urn:uuid:00000000-0000-0000-0000-0000000000ff>\n" +
			"WARC-Date: 2026-11-03T03:05:06.007008Z\n" +
			"WARC-Filename: f.warc.gz\n" +
			"WARC-Target-URI: http://a.test/?q=ä\n" +
			"WARC-IP-Address: 2001:db8::1\n" +
			"WARC-Concurrent-To: <urn:uuid:00000000-0000-0000-0000-0000000000ff>\n" +
			"WARC-Profile: " + ProfileIdentical + "\n" +
			"WARC-Refers-To: <urn:uuid:00000000-0000-0000-0000-0000000000ff>\n" +
			"WARC-Refers-To-Target-URI: http://b.test/\n" +
			"WARC-Refers-To-Date: 2026-11-03T03:05:06.007008Z\n" +
			"WARC-Block-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\n" +
			"WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\n" +
			"WARC-Truncated: time\n" +
			"WARC-Protocol: h2\n" +
			"WARC-Protocol: tls/1.3\n" +
			"WARC-Cipher-Suite: TLS_AES_128_GCM_SHA256\n" +
			"Content-Type: application/http;msgtype=response\n" +
			"A: b\n" +
			"Content-Length: 1099511627776\n\n"},
		{"unknown fields are omitted",
			Head{Type: "warcinfo", ID: someID, Date: time.Unix(0, 0), block: emptySHA1},
			"WARC/1.1\n" +
				"WARC-Type: warcinfo\n" +
				"WARC-Record-ID: <urn:uuid:123e4567-e89b-42d3-a456-010203040506>\n" +
				"WARC-Date: 1970-01-01T00:00:00.000000Z\n" +
				"WARC-Block-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\n" +
				"Content-Length: 0\n\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := string(tt.h.append([]byte("before")))
			require.Equal(t, "before"+strings.ReplaceAll(tt.want, "\n", "\r\n"), got)
		})
	}
}

func TestAddresses(t *testing.T) {
	tests := []struct {
		name string
		addr netip.Addr
		want string
	}{
		{"no address, no field", netip.Addr{}, ""},
		{"IPv4", netip.MustParseAddr("192.0.2.7"), "WARC-IP-Address: 192.0.2.7\r\n"},
		{"IPv4 from a dual-stack socket", netip.MustParseAddr("::ffff:192.0.2.7"),
			"WARC-IP-Address: 192.0.2.7\r\n"},
		{"a zone cannot inject fields", netip.MustParseAddr("fe80::1").WithZone("x\r\nA: b"),
			"WARC-IP-Address: fe80::1\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, string(appendAddr(nil, tt.addr)))
		})
	}
}

func TestIDsAreRandomUUIDs(t *testing.T) {
	seen := map[ID]bool{}
	for range 1000 {
		id := NewID()
		require.EqualValues(t, 4, id[6]>>4, "version of %x", id)
		require.EqualValues(t, 2, id[8]>>6, "variant of %x", id)
		require.False(t, seen[id], "%x twice", id)
		seen[id] = true
	}
	// Every bit that is not fixed takes both values.
	var ones, zeros ID
	for id := range seen {
		for i, b := range id {
			ones[i] |= b
			zeros[i] |= ^b
		}
	}
	require.Equal(t, 16-2, strings.Count(string(ones[:]), "\xff"), "%x", ones)
	require.Equal(t, 16-2, strings.Count(string(zeros[:]), "\xff"), "%x", zeros)
}
