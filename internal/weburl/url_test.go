package weburl_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

func TestParseAndSerialize(t *testing.T) {
	for _, tt := range []struct{ name, input, base, want string }{
		{"case and default port", "HTTP://EXAMPLE.test:80/A", "", "http://example.test/A"},
		{"empty path", "https://a.test", "", "https://a.test/"},
		{"empty query is kept", "https://a.test?", "", "https://a.test/?"},
		{"spaces around, tabs within", " \x00https://a.test/b\n\tc\r ", "", "https://a.test/bc"},
		{"space before the fragment", "https://a.test/b #c", "", "https://a.test/b%20#c"},
		{"backslashes", `https:\\a.test\b\c?\d`, "", `https://a.test/b/c?\d`},
		{"too many slashes", "http:////a.test//b", "", "http://a.test//b"},
		{"stray percent signs", "https://a.test/%zz%2", "", "https://a.test/%zz%2"},
		{"escapes keep their case", "https://a.test/%c3%A9", "", "https://a.test/%c3%A9"},
		{"characters are encoded", "https://a.test/é{}?é'{}#é`", "",
			"https://a.test/%C3%A9%7B%7D?%C3%A9%27{}#%C3%A9%60"},
		{"invalid UTF-8", "https://a.test/\xff\xed\xa0", "",
			"https://a.test/%EF%BF%BD%EF%BF%BD%EF%BF%BD"},
		{"credentials", "http://u@v:p:w@a.test", "", "http://u%40v:p%3Aw@a.test/"},
		{"password only", "http://:p@a.test/", "", "http://:p@a.test/"},
		{"port with leading zeros", "http://a.test:00081/", "", "http://a.test:81/"},
		{"no port after the colon", "http://a.test:/", "", "http://a.test/"},

		{"dot segments", "https://a.test/b/./c/../../d/.", "", "https://a.test/d/"},
		{"encoded dots", "https://a.test/b/%2E/c/.%2e/d", "", "https://a.test/b/d"},
		{"dots above the root", "https://a.test/../../b/..", "", "https://a.test/"},
		{"three dots are a name", "https://a.test/.../%2e.x/%2g/", "", "https://a.test/.../%2e.x/%2g/"},
		{"hidden files stay", "https://a.test/.well-known/a", "", "https://a.test/.well-known/a"},

		{"relative path", "e?f", "https://a.test/b/c?d#e", "https://a.test/b/e?f"},
		{"relative query", "?f", "https://a.test/b/c?d#e", "https://a.test/b/c?f"},
		{"relative fragment", "#f", "https://a.test/b/c?d#e", "https://a.test/b/c?d#f"},
		{"empty reference", "", "https://a.test/b/c?d#e", "https://a.test/b/c?d"},
		{"absolute path", "/f", "https://u:p@a.test:8080/b/c", "https://u:p@a.test:8080/f"},
		{"network path", "//b.test/f", "https://a.test/b", "https://b.test/f"},
		{"scheme without slashes", "https:f", "https://a.test/b/c", "https://a.test/b/f"},
		{"other scheme without slashes", "http:f", "https://a.test/b/c", "http://f/"},
		{"back to the parent", "../f", "https://a.test/b/c/d", "https://a.test/b/f"},
		{"two slashes, not special", "//b/c", "x://a/b", "x://b/c"},
		{"backslash, not special", `\b`, "x://a/b", `x://a/\b`},

		{"file", "file:c/d", "", "file:///c/d"},
		{"file on localhost", "file://localhost/c", "", "file:///c"},
		{"file with a host", "file://h/c", "", "file://h/c"},
		{"drive letter", "file:///C|/a/../../..", "", "file:///C:/"},
		{"drive letter as host", "file://C:/a", "", "file:///C:/a"},
		{"drive letter is inherited", "/b", "file:///C:/a/c", "file:///C:/b"},
		{"drive letter is replaced", "D:/b", "file:///C:/a/c", "d:/b"},
		{"drive letter without a scheme", "D|/b", "file:///C:/a/c", "file:///D:/b"},
		{"file relative", "b", "file://h/a/c?q", "file://h/a/b"},
		{"file same", "?x", "file://h/a/c?q", "file://h/a/c?x"},

		{"opaque path", "mailto:Ä b@c ", "", "mailto:%C3%84 b@c"},
		{"space at the end of an opaque path", "data:a  ?b", "", "data:a %20?b"},
		{"fragment on an opaque base", "#f", "data:a?b", "data:a?b#f"},
		{"no host, but two slashes", "x:/.//p", "", "x:/.//p"},
		{"empty host", "x:///p", "", "x:///p"},
		{"empty path, not special", "x://h?q", "", "x://h?q"},
		{"host of another scheme", "x://H%4f:1/", "", "x://H%4f:1/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, err := parseWith(tt.input, tt.base)
			require.NoError(t, err)
			require.Equal(t, tt.want, u.String())
		})
	}
}

func TestHosts(t *testing.T) {
	for _, tt := range []struct{ name, input, want string }{
		{"domain", "wWw.Example.test", "www.example.test"},
		{"root dot stays", "a.test.", "a.test."},
		{"odd but allowed characters", "a_b!$&'()*+,;=~`{}.test", "a_b!$&'()*+,;=~`{}.test"},
		{"escapes", "%61%2Etest", "a.test"},
		{"international", "Bücher.test", "xn--bcher-kva.test"},
		{"international, escaped", "b%C3%BCcher.test", "xn--bcher-kva.test"},
		{"ideographic dots", "a。test", "a.test"},
		{"bad punycode in ASCII", "XN--a.test", "xn--a.test"},
		{"capital sharp s", "STRA\u1e9eE.test", "xn--strae-oqa.test"},
		{"IPv4", "192.0.2.1", "192.0.2.1"},
		{"IPv4 in hexadecimal and octal", "0xC0.00.0X2.01", "192.0.2.1"},
		{"IPv4 as one number", "3221225985", "192.0.2.1"},
		{"IPv4 in two parts", "192.513", "192.0.2.1"},
		{"IPv4 with a root dot", "192.0.2.1.", "192.0.2.1"},
		{"IPv4 in full-width digits", "１９２.0.2.1", "192.0.2.1"},
		{"bare 0x is zero", "0x", "0.0.0.0"},
		{"number before a name", "1.2.3.4.test", "1.2.3.4.test"},
		{"not a hexadecimal number", "1.0xg", "1.0xg"},
		{"two root dots", "1..", "1.."},
		{"IPv6", "[2001:DB8:0:0::0:1]", "[2001:db8::1]"},
		{"IPv6, first longest run", "[1:0:0:2:0:0:3:4]", "[1::2:0:0:3:4]"},
		{"IPv4 in IPv6", "[::ffff:192.0.2.1]", "[::ffff:c000:201]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, err := weburl.Parse("http://"+tt.input+"/", nil)
			require.NoError(t, err)
			require.Equal(t, tt.want, u.Host)
		})
	}
}

// hostNames are names as URL.Hostname has them, and what HostName makes of them.
var hostNames = []struct{ name, input, want string }{
	{"canonical", "www.example.test", "www.example.test"},
	{"capital letters", "WWW.Example.TEST", "www.example.test"},
	{"root dot", "a.test.", "a.test"},
	{"more dots", "a.test...", "a.test"},
	{"single label", "localhost", "localhost"},
	{"underscore", "_a_b.test", "_a_b.test"},
	{"international", "bücher.test", "xn--bcher-kva.test"},
	{"international in capital letters", "BÜCHER.test", "xn--bcher-kva.test"},
	{"decomposed", "bu\u0308cher.test", "xn--bcher-kva.test"},
	{"ideographic root dot", "bücher。test。", "xn--bcher-kva.test"},
	{"punycode", "XN--BCHER-KVA.test.", "xn--bcher-kva.test"},
	{"IPv4", "192.0.2.1", "192.0.2.1"},
	{"IPv4 with a root dot", "192.0.2.1.", "192.0.2.1"},
	{"IPv4 with ideographic dots", "0xc0.513。。", "192.0.2.1"},
	{"IPv4 in hexadecimal", "0x7f.1", "127.0.0.1"},
	{"IPv6", "2001:db8::1", "2001:db8::1"},
	{"IPv6, long", "2001:DB8:0:0::0:1", "2001:db8::1"},
	{"IPv6, longest", "1111:2222:3333:4444:5555:6666:7777:8888", "1111:2222:3333:4444:5555:6666:7777:8888"},
	{"IPv4 in IPv6", "::ffff:192.0.2.1", "::ffff:c000:201"},
}

func TestHostName(t *testing.T) {
	for _, tt := range hostNames {
		t.Run(tt.name, func(t *testing.T) {
			got, err := weburl.HostName(tt.input)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			require.Zero(t, testing.AllocsPerRun(10, func() {
				if again, err := weburl.HostName(got); err != nil || again != got {
					t.Errorf("HostName(%q) = %q, %v", got, again, err)
				}
			}))
		})
	}
	for _, bad := range []string{
		"", ".", "...", "。", "\u00ad", "a b.test", "a/b", "a%zz", "a@b", "a\xff", "[::1]", "a:80", "::1%eth0", "1::2::3",
		"a.1", "256.1.1.1", "1.2.3.4.5", strings.Repeat("é", 600),
	} {
		name, err := weburl.HostName(bad)
		require.ErrorIs(t, err, weburl.ErrHost, bad)
		require.ErrorAs(t, err, new(weburl.ParseError), bad)
		require.Empty(t, name, bad)
	}
}

// FuzzHostName: names are ASCII in lower case and fixed points, and equal names are those that Parse
// takes for the same host.
func FuzzHostName(f *testing.F) {
	for _, tt := range hostNames {
		f.Add(tt.input)
	}
	f.Add("0x7f.1。。")
	f.Fuzz(func(t *testing.T, input string) {
		name, err := weburl.HostName(input)
		if err != nil {
			t.Skip()
		}
		if name != strings.ToLower(name) || strings.HasSuffix(name, ".") || name == "" ||
			strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("HostName(%q) = %q", input, name)
		}
		if again, err := weburl.HostName(name); err != nil || again != name {
			t.Errorf("HostName(%q) = %q, then %q, %v", input, name, again, err)
		}
		host := name
		if strings.Contains(name, ":") {
			host = "[" + name + "]"
		}
		if u, err := weburl.Parse("http://"+host+"/", nil); err != nil || u.Host != host {
			t.Errorf("HostName(%q) = %q, which Parse makes %q, %v", input, name, u.Host, err)
		}
	})
}

func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		name, input, base string
		want              error
	}{
		{"no base", "/a", "", weburl.ErrNoBase},
		{"nothing", "", "", weburl.ErrNoBase},
		{"scheme that starts with a digit", "1a:b", "", weburl.ErrNoBase},
		{"scheme with an odd character", "a_b:c", "", weburl.ErrNoBase},
		{"opaque base", "a", "mailto:b", weburl.ErrNoBase},
		{"opaque base and a query", "?a#b", "mailto:b", weburl.ErrNoBase},
		{"no host", "http://", "", weburl.ErrHost},
		{"no host before a port", "x://:80/", "", weburl.ErrHost},
		{"credentials without a host", "x://u@/", "", weburl.ErrHost},
		{"space in a host", "http://a b/", "", weburl.ErrHost},
		{"escaped slash in a host", "http://a%2fb/", "", weburl.ErrHost},
		{"percent sign in a host", "http://a%zz/", "", weburl.ErrHost},
		{"forbidden character in another scheme", "x://a^b/", "", weburl.ErrHost},
		{"host that maps to nothing", "http://\u00ad/", "", weburl.ErrHost},
		{"invalid UTF-8 in a host", "http://a\xff/", "", weburl.ErrHost},
		{"long international host", "http://" + strings.Repeat("é", 600), "", weburl.ErrHost},
		{"bad file host", "file://a b/", "", weburl.ErrHost},
		{"IPv4 with five parts", "http://1.2.3.4.5/", "", weburl.ErrHost},
		{"IPv4 part above 255", "http://256.1.1.1/", "", weburl.ErrHost},
		{"IPv4 above 32 bits", "http://4294967296/", "", weburl.ErrHost},
		{"IPv4 above 64 bits", "http://99999999999999999999999/", "", weburl.ErrHost},
		{"IPv4 with a bad octal number", "http://1.2.3.08/", "", weburl.ErrHost},
		{"IPv4 with an empty part", "http://1..2/", "", weburl.ErrHost},
		{"number after a name", "http://a.1/", "", weburl.ErrHost},
		{"unclosed IPv6", "http://[::1/", "", weburl.ErrHost},
		{"IPv4 in brackets", "http://[1.2.3.4]/", "", weburl.ErrHost},
		{"IPv6 with a zone", "http://[fe80::1%25eth0]/", "", weburl.ErrHost},
		{"IPv6 with too many parts", "http://[1:2:3:4:5:6:7:8:9]/", "", weburl.ErrHost},
		{"port above 65535", "http://a:65536/", "", weburl.ErrPort},
		{"port with a letter", "http://a:8x/", "", weburl.ErrPort},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseWith(tt.input, tt.base)
			require.ErrorIs(t, err, tt.want)
			var parseError weburl.ParseError
			require.True(t, errors.As(err, &parseError))
			require.Equal(t, tt.want.Error()+": "+parseError.Reason, err.Error())
		})
	}
}

func TestComponents(t *testing.T) {
	u, err := weburl.Parse("wss://u:p@[::1]:8080/a/b?c=d#e", nil)
	require.NoError(t, err)
	require.Equal(t, weburl.URL{
		Scheme: "wss", Username: "u", Password: "p", Host: "[::1]", Port: "8080", Path: "/a/b",
		Query: "c=d", Fragment: "e", HasHost: true, HasQuery: true, HasFragment: true,
	}, u)
	require.True(t, u.Special())
	require.Equal(t, "> wss://u:p@[::1]:8080/a/b?c=d", string(u.Append([]byte("> "), false)))

	u, err = weburl.Parse("mailto:a@b.test", nil)
	require.NoError(t, err)
	require.Equal(t, weburl.URL{Scheme: "mailto", Path: "a@b.test", Opaque: true}, u)
	require.False(t, u.Special())
}

func TestNormalInputDoesNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 256)
	for _, in := range []string{
		"https://www.example.test/a/.b/%C3%A9/c.html?d=e%20f&g=1#h",
		"http://127.0.0.1:8080/",
		"http://[2001:db8::1]/x",
		"http://[::ffff:c000:201]/x",
	} {
		require.Zero(t, testing.AllocsPerRun(10, func() {
			u, err := weburl.Parse(in, nil)
			if err != nil || string(u.Append(dst, true)) != in {
				t.Errorf("Parse(%q) = %q, %v", in, u.String(), err)
			}
		}), in)
	}
}

func FuzzNormalFormIsStable(f *testing.F) {
	f.Add(" HTTP://u:p@EXAMPLE.com:80/a/../b?x=1#f", "")
	f.Add("..\\x y?'", "https://a.test/b/c/d?e")
	f.Add("C|/x", "file://h/D:/e")
	f.Add("x:/.//p ?", "mailto:a b ?c")
	f.Add("http://0x7f.1:00/\xff", "x://é[/")
	f.Fuzz(func(t *testing.T, input, base string) {
		once, err := parseWith(input, base)
		if err != nil {
			t.Skip()
		}
		text := once.String()
		twice, err := weburl.Parse(text, nil)
		if err != nil || twice != once {
			t.Errorf("Parse(%q, %q) = %q: %+v, then %+v, %v", input, base, text, once, twice, err)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }); i >= 0 {
			t.Errorf("Parse(%q, %q) = %q: byte %d is not printable ASCII", input, base, text, i)
		}
	})
}

// BenchmarkParse also shows that hostile input takes linear time: ns/B must not grow with the size.
func BenchmarkParse(b *testing.B) {
	hostile := func(prefix, repeated string) func(int) string {
		return func(size int) string { return prefix + strings.Repeat(repeated, size/len(repeated)) }
	}
	for _, shape := range []struct {
		name string
		make func(size int) string
	}{
		{"normal", hostile("https://www.example.test/articles/index.html?id=", "0123456789")},
		{"dots", hostile("http://a.test/", "a/../.")},
		{"escapes", hostile("http://a.test/", "/%2e%2E\\\xff")},
		{"backslashes", hostile("http://a.test/", "\\")},
		{"host", hostile("http://", "1.%")},
		{"credentials", hostile("http://", "@:")},
	} {
		for _, size := range []int{100, 10_000, 1_000_000} {
			in := shape.make(size)
			b.Run(fmt.Sprintf("shape=%s/size=%d", shape.name, size), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _ = weburl.Parse(in, nil)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size), "ns/B")
			})
		}
	}
}

// latin1 encodes up to U+00FF.
func latin1(dst []byte, text string) []byte {
	for _, r := range text {
		if r > 0xff {
			dst = fmt.Appendf(dst, "%%26%%23%d%%3B", r)
			continue
		}
		dst = append(dst, byte(r))
	}
	return dst
}

func TestQueriesInTheEncodingOfThePage(t *testing.T) {
	base, err := weburl.Parse("http://a.test/dir/?old", nil)
	require.NoError(t, err)
	for raw, want := range map[string]string{
		"/é?é=a b#é":        "http://a.test/%C3%A9?%E9=a%20b#%C3%A9",
		"?€&é€":             "http://a.test/dir/?%26%238364%3B&%E9%26%238364%3B",
		"?é'|":              "http://a.test/dir/?%E9%27|",
		"":                  "http://a.test/dir/?old",
		"https://é.test/?é": "https://xn--9ca.test/?%E9",
		"ws://b.test/?é":    "ws://b.test/?%C3%A9",
		"x://b.test/?é":     "x://b.test/?%C3%A9",
		"?\xff":             "http://a.test/dir/?%26%2365533%3B",
	} {
		u, err := weburl.ParseEncoded(raw, &base, latin1)
		require.NoError(t, err, raw)
		require.Equal(t, want, u.String(), raw)
		var r weburl.Resolver
		r.Reset(base)
		r.Encoder = latin1
		got, ok := r.Append(nil, []byte(raw))
		if weburl.IsWeb(&u) {
			require.True(t, ok)
			require.Equal(t, strings.TrimSuffix(want, "#%C3%A9"), string(got))
		}
	}
}
