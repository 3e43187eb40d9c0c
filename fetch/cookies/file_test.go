package cookies_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/spinneret-go/spinneret/fetch/cookies"
	"github.com/stretchr/testify/require"
)

// Each cookie of a file is sent where the file says, and nowhere else.
func TestLoad(t *testing.T) {
	const file = "# Netscape HTTP Cookie File\n\n" +
		".a.test\tTRUE\t/\tFALSE\t0\tall\tone\r\n" +
		"a.test\tFALSE\t/dir\tFALSE\t4102444800\tdir\ttwo words\n" +
		"#HttpOnly_a.test\tFALSE\t/\tTRUE\t4102444800\tsafe\tthree\n" +
		"a.test\tFALSE\t/\tFALSE\t1\told\tgone\n" +
		"e.test\tFALSE\t/\tFALSE\t9223372036854775807\tlast\tx\n" +
		"c.test\tFALSE\t/\tFALSE\t0\tquoted\t\"x\"\n" +
		"co.uk\tTRUE\t/\tFALSE\t0\tsuffix\tx\n" +
		"127.0.0.1\tTRUE\t/\tFALSE\t0\tip\tx\n" +
		"::1\tFALSE\t/\tFALSE\t0\tip6\tx\n" +
		"bücher.test\tFALSE\t/\tFALSE\t0\tidn\tx\n" +
		"a.test\tFALSE\t/\tFALSE\t0\tempty"
	jar := new(cookies.Jar)
	require.NoError(t, jar.Load(strings.NewReader(file)))
	for page, want := range map[string]string{
		"http://a.test/":            "all=one; empty=",
		"http://A.test.:80":         "all=one; empty=",
		"http://a.test/dir/":        `dir="two words"; all=one; empty=`,
		"https://a.test/":           "all=one; safe=three; empty=",
		"http://x.a.test/":          "all=one",
		"http://b.test/":            "",
		"http://c.test/":            `quoted="x"`,
		"http://e.test/":            "last=x",
		"http://xa.test/":           "",
		"http://co.uk/":             "suffix=x",
		"http://b.co.uk/":           "",
		"http://127.0.0.1:8080/":    "ip=x",
		"http://x.127.0.0.1.test/":  "",
		"http://[::1]/":             "ip6=x",
		"http://xn--bcher-kva.test": "idn=x",
		"ftp://a.test/":             "",
	} {
		require.Equal(t, want, sent(t, jar, page), page)
	}
}

// Comments may be longer than a line of bufio.Scanner, and a line that is too long has a number.
func TestLoadLongLines(t *testing.T) {
	const cookie = "a.test\tFALSE\t/\tFALSE\t0\ta\tb\n"
	jar := new(cookies.Jar)
	require.NoError(t, jar.Load(strings.NewReader("# "+strings.Repeat("x", 100_000)+"\n"+cookie)))
	require.Equal(t, "a=b", sent(t, jar, "http://a.test/"))
	err := jar.Load(strings.NewReader(cookie + strings.Repeat("x", 2<<20)))
	require.ErrorContains(t, err, "line 2: ")
}

func TestLoadErrors(t *testing.T) {
	for line, want := range map[string]string{
		"a.test\tFALSE\t/":                                                  "line 2: 3 fields",
		"a.test\tFALSE\t/\tFALSE\tsoon\tname\tx":                            `line 2: expiry "soon"`,
		"\tFALSE\t/\tFALSE\t0\tname\tx":                                     "line 2: no domain",
		"a.test\tFALSE\tadmin\tFALSE\t0\tname\tx":                           "line 2: the path has no /",
		"a.test\tFALSE\t\tFALSE\t0\tname\tx":                                "line 2: the path has no /",
		"a.test\tFALSE\t/" + strings.Repeat("x", 1024) + "\tFALSE\t0\tn\tx": "line 2: the path has no /",
		"a b\tFALSE\t/\tFALSE\t0\tname\tx":                                  "line 2: no domain",
		"a.test\tFALSE\t/\tFALSE\t0\t\tx":                                   "line 2: no domain or no name",
		"a.test\tFALSE\t/\tFALSE\t0\tname\t{\"a\":1}":                       "line 2: net/http does not send such a value",
		"a.test\tFALSE\t/\tFALSE\t0\tname\t\"x":                             "line 2: net/http does not send such a value",
		"a.test FALSE / FALSE 0 name spaces only":                           "line 2: 1 fields, want 7 with tabs",
		"a.test\tFALSE\t/\tFALSE\t0\tn\t" + strings.Repeat("v", 4096):       "line 2: a name and a value of more than 4,096 bytes",
		strings.Repeat("x", 2<<20):                                          "token too long",
	} {
		jar := new(cookies.Jar)
		err := jar.Load(strings.NewReader("a.test\tFALSE\t/\tFALSE\t0\tfirst\tx\n" + line))
		require.ErrorContains(t, err, want)
		require.Equal(t, "first=x", sent(t, jar, "http://a.test/"), "those before the line are loaded")
	}
	broken := errors.New("broken")
	require.ErrorIs(t, new(cookies.Jar).Load(iotest.ErrReader(broken)), broken)
}

// Whatever servers set, the cookies of the operator stay.
func TestLoadedCookiesAreNotEvicted(t *testing.T) {
	const loaded = 2 * cookies.MaxSite
	var file strings.Builder
	for i := range loaded {
		fmt.Fprintf(&file, "a.test\tTRUE\t/\tFALSE\t0\tl%d\t%s\n", i, strings.Repeat("v", 1000))
	}
	jar := new(cookies.Jar)
	set(t, jar, "https://a.test/", "l0=set by the server", "own=1")
	require.Equal(t, 2, jar.Held())
	require.NoError(t, jar.Load(strings.NewReader(file.String())))
	require.Equal(t, 1, jar.Held(), "the file's replaces the server's")
	flood(t, jar, "https://a.test/", 5000, "v")
	require.Equal(t, cookies.MaxSite, jar.Held())
	for i := range 50 {
		flood(t, jar, fmt.Sprintf("https://h%d.test/", i), cookies.MaxSite, "v")
	}
	got := sent(t, jar, "https://x.a.test/")
	require.Equal(t, loaded, strings.Count(got, "=v"))

	// Their server can replace and delete them. They keep their place.
	set(t, jar, "https://a.test/", "l1=new; Domain=a.test", "l2=; Domain=a.test; Max-Age=0")
	flood(t, jar, "https://a.test/", 5000, "v")
	for i := range 50 {
		flood(t, jar, fmt.Sprintf("https://h%d.test/", i), cookies.MaxSite, "v")
	}
	got = sent(t, jar, "https://x.a.test/")
	require.Equal(t, loaded-2, strings.Count(got, "=v"))
	require.Contains(t, got, "l1=new;")
	require.NotContains(t, got, "l2=")
}

// FuzzLoad: a file is read without an error exactly if each of its lines is, and reading it again
// changes nothing.
func FuzzLoad(f *testing.F) {
	f.Add("a.test\tTRUE\t/\tFALSE\t0\ta\tb", "#HttpOnly_.b.test\tTRUE\t/x\tTRUE\t4102444800\tc\td\r")
	f.Fuzz(func(t *testing.T, first, second string) {
		if strings.Contains(first+second, "\n") || len(first)+len(second) > 1<<15 {
			t.Skip()
		}
		load := func(jar *cookies.Jar, text string) bool { return jar.Load(strings.NewReader(text)) == nil }
		jar := new(cookies.Jar)
		both := load(jar, first+"\n"+second)
		if both != (load(new(cookies.Jar), first) && load(new(cookies.Jar), second)) {
			t.Errorf("%q, %q: together %t", first, second, both)
		}
		n := jar.Len()
		if load(jar, first+"\n"+second) != both || jar.Len() != n || jar.Held() != 0 || n > 2 {
			t.Errorf("%q, %q: %d cookies, then %d", first, second, n, jar.Len())
		}
	})
}
