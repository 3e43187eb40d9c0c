package weburl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// resolveByParse is the reference for a Resolver.
func resolveByParse(ref string, base *URL) (string, bool) {
	u, err := Parse(ref, base)
	if err != nil || !IsWeb(&u) {
		return "", false
	}
	u.Username, u.Password = "", ""
	return string(u.Append(nil, false)), true
}

var resolverBases = []string{
	"http://a.test/", "http://a.test", "https://a.test/d/e/f.html?q#f", "http://u:p@a.test:8080/d//e/",
	"http://a.test/d/..;x/y", "file:///C:/d/e", "mailto:x@a.test", "ftp://a.test/d/e",
	"http://[::1]/x/y", "http://127.0.0.1/%2e%2e/x/",
}

func TestResolverMatchesParse(t *testing.T) {
	refs := []string{
		"", "x", "/x", "//b.test", "//b.test/x", "http://b.test", "https://b.test/x/y?z#f",
		"http:x", "http:/x", "http:///x", "https:x", "HTTP://B.test/", "http://b.test:80/x",
		"http://u:p@b.test/", "http://1.2.3.4/", "http://0x7f.1", "http://b.test./x", "http://b.1.",
		"http://b..test", "http://.", "http://b.test.//x", "http://a_b.test/", "http://ü.test/",
		"http://%41.test/", "?", "?q", "?q'r", "?q#f", "#", "#f", "x?y?z", "x?", "x#", "x y", "x\ty",
		".", "..", "./", "../", "./x", "../x", "../../x", "../../../../x", "..//x", "x/..", "x/./y",
		"x/../y", "/..", "/../x", "/./x", "//", "///", "////x", "/.", "/.x", "%2e/x", "x/%2E%2e/y",
		"a:b", "./a:b", "x/a:b", "mailto:x", "javascript:void(0)", "data:,x", "ftp://b.test/x",
		"\\x", "x\\y", "/\\b.test", "x^y", "x|y", "x'y", "x`y", "{x}", "é", "x?é", "x?y^z", "\x00",
		"http", "http:", "http:/", "http://", ":", ":x", "1:x", "x+y:z", "//b.test:81/x", "//b%",
		"../?q", "x//y", "//b.test?q", "//b.test#f", "http://b.test?q", "..?q", "../..?q", "...", "../.x",
	}
	for _, b := range resolverBases {
		base, err := Parse(b, nil)
		require.NoError(t, err)
		var r Resolver
		r.Reset(base)
		for _, ref := range refs {
			want, wantOK := resolveByParse(ref, &base)
			got, ok := r.Append([]byte("before "), []byte(ref))
			require.Equal(t, wantOK, ok, "Append(%q) to %q", ref, b)
			require.Equal(t, "before "+want, string(got), "Append(%q) to %q", ref, b)
		}
	}
}

// FuzzResolver checks that a Resolver returns the same as Parse, even after other bases.
func FuzzResolver(f *testing.F) {
	f.Add("http://a.test/d/e?q", "../x?y#z")
	f.Add("https://a.test:1/", "//b.test./%2e")
	f.Add("http://a.test/../x", "http://b.0x/")
	var r Resolver
	f.Fuzz(func(t *testing.T, b, ref string) {
		base, err := Parse(b, nil)
		if err != nil {
			return
		}
		r.Reset(base)
		want, wantOK := resolveByParse(ref, &base)
		if got, ok := r.Append(nil, []byte(ref)); ok != wantOK || string(got) != want {
			t.Errorf("Append(%q) to %q = %q, %t, want %q, %t", ref, b, got, ok, want, wantOK)
		}
	})
}

func TestResolverCopiesWithoutAllocations(t *testing.T) {
	base, err := Parse("https://a.test/dir/page.html", nil)
	require.NoError(t, err)
	var r Resolver
	r.Reset(base)
	buf := make([]byte, 0, 256)
	for ref := range strings.FieldsSeq("x ../x?y#z /x //b.test/x https://b.test/ ?q mailto:x") {
		b := []byte(ref)
		require.Zero(t, testing.AllocsPerRun(10, func() { buf, _ = r.Append(buf[:0], b) }), ref)
	}
}

// TestLongInternationalNames: nothing but punycode costs more than a few steps for each byte, so names of
// too many different characters are refused before that.
func TestLongInternationalNames(t *testing.T) {
	han := func(from, n int) string {
		var name strings.Builder
		for i := range n {
			name.WriteRune(rune(0x4e00 + from + i))
		}
		return name.String()
	}
	for name, fine := range map[string]bool{
		han(0, 63):                     true,
		han(0, 64):                     false,
		han(0, 340):                    false,
		"a." + han(0, 63) + "a.test":   true,
		"a." + han(0, 64) + ".test":    false,
		han(0, 63) + "。" + han(63, 63): true, // which also separates labels
		han(0, 63) + "." + han(9, 63) + "." + han(0, 63): true,
		strings.Repeat("é", 255):                         true,
		strings.Repeat("é", 256):                         false,
		strings.Repeat("%c3%a9", 256):                    false,
		strings.Repeat("a", 2000):                        true, // costs nothing
	} {
		_, err := HostName(name)
		require.Equal(t, fine, err == nil, "%q: %v", name, err)
	}
}

// TestTheLastHostIsRemembered, and no other.
func TestTheLastHostIsRemembered(t *testing.T) {
	base, err := Parse("http://a.test/", nil)
	require.NoError(t, err)
	var r Resolver
	r.Reset(base)
	for _, ref := range []string{
		"//é.test/1", "//é.test/2", "//É.test:8/", "//é.test", "http://ab\u200Dc.test/", "//ab\u200Dc.test/x", "//é.test/3",
		"ftp://é.test/", "//b.test/", "//%C3%A9.test/", "//é.test/", "//xn--/", "//é..test/", "/é",
	} {
		want, wrong := Parse(ref, &base)
		got, ok := r.Append(nil, []byte(ref))
		require.Equal(t, wrong == nil && IsWeb(&want), ok, ref)
		if ok {
			require.Equal(t, want.String(), string(got), ref)
		}
	}
	once := testing.AllocsPerRun(10, func() { r.Append(nil, []byte("//é.test/")) })
	changing := 0
	each := testing.AllocsPerRun(10, func() {
		changing++
		r.Append(nil, []byte("//"+strings.Repeat("é", 1+changing%2)+".test/"))
	})
	require.Less(t, once+2, each)
}
