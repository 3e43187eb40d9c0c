package weburl_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// spellings are different ways to write the same URL, by the URL Standard. Each takes the scheme,
// the host with its port, and the rest.
var spellings = []struct {
	name  string
	spell func(scheme, host, rest string) (string, string, string)
}{
	{"upper case", func(scheme, host, rest string) (string, string, string) {
		return strings.ToUpper(scheme), strings.ToUpper(host), rest
	}},
	{"default port", func(scheme, host, rest string) (string, string, string) {
		port := map[string]string{"http": ":80", "https": ":443"}[strings.ToLower(scheme)]
		if hasPort(host) {
			port = ""
		}
		return scheme, host + port, rest
	}},
	{"zeros before the port", func(scheme, host, rest string) (string, string, string) {
		if hasPort(host) {
			colon := strings.LastIndexByte(host, ':')
			host = host[:colon] + ":00" + host[colon+1:]
		}
		return scheme, host, rest
	}},
	{"an escape in the name", func(scheme, host, rest string) (string, string, string) {
		if c := host[0]; 'a' <= c && c <= 'z' {
			host = "%" + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]) + host[1:]
		}
		return scheme, host, rest
	}},
	{"user name and password", func(scheme, host, rest string) (string, string, string) {
		return scheme, "u:p@:@" + host, rest
	}},
	{"more slashes", func(scheme, host, rest string) (string, string, string) {
		return scheme, "//" + host, rest
	}},
	{"backslashes", func(scheme, host, rest string) (string, string, string) {
		path, query, found := strings.Cut(rest, "?")
		path = strings.ReplaceAll(path, "/", `\`)
		if found {
			path += "?" + query
		}
		return scheme, `\` + host, path
	}},
	{"dot segments", func(scheme, host, rest string) (string, string, string) {
		return scheme, host, "/./x/%2E." + rest
	}},
	{"fragment", func(scheme, host, rest string) (string, string, string) {
		return scheme, host, rest + "#a?b#c"
	}},
	{"spaces around", func(scheme, host, rest string) (string, string, string) {
		return " \x00\n" + scheme, host, rest + "\r \x1f"
	}},
	{"line breaks within", func(scheme, host, rest string) (string, string, string) {
		middle := len(rest) / 2
		return scheme[:1] + "\n" + scheme[1:], "\t" + host, rest[:middle] + "\r\n\t" + rest[middle:]
	}},
}

func hasPort(host string) bool {
	return strings.LastIndexByte(host, ':') > strings.LastIndexByte(host, ']')
}

// respelled applies the spellings whose bits are set, in order.
func respelled(url string, choice uint16) string {
	scheme, rest, _ := strings.Cut(url, "://")
	end := strings.IndexByte(rest, '/')
	host, rest := rest[:end], rest[end:]
	for i, s := range spellings {
		if choice>>i&1 != 0 {
			scheme, host, rest = s.spell(scheme, host, rest)
		}
	}
	return scheme + "://" + host + rest
}

func TestSpellingsOfOneURL(t *testing.T) {
	for _, url := range []string{
		"https://www.example.test/a/b?c=d&e",
		"http://192.0.2.1:8080/?",
		"https://[2001:db8::1]/%7E/~",
		"http://xn--bcher-kva.test:81/%C3%BC",
		"http://a/",
	} {
		for i, s := range spellings {
			got, err := weburl.Canonical(respelled(url, 1<<i))
			require.NoError(t, err, s.name)
			require.Equal(t, url, got, s.name)
		}
	}
}

// FuzzSpellings applies any combination of spellings to any URL.
func FuzzSpellings(f *testing.F) {
	f.Add("https://www.example.test/a/b?c=d&e", uint16(0x7ff))
	f.Add("http://[::1]:8080/..?/../", uint16(0x155))
	f.Add("http://1.2.3:80/a|b?c|d#e|f", uint16(0x2aa))
	f.Fuzz(func(t *testing.T, in string, choice uint16) {
		url, err := weburl.Canonical(in)
		if err != nil {
			t.Skip()
		}
		spelled := respelled(url, choice)
		if got, err := weburl.Canonical(spelled); err != nil || got != url {
			t.Errorf("%q is canonical, but %q becomes %q, %v", url, spelled, got, err)
		}
	})
}

var strayPercent = regexp.MustCompile(`%([^0-9A-F]|.[^0-9A-F]|.?$)`)

// FuzzEscapes encodes characters that need no encoding, which NormalizeEscapes must undo.
func FuzzEscapes(f *testing.F) {
	f.Add("https://a.test/~joe/x-y._z?a=b%20c", uint64(0x5555))
	f.Add("https://a.test/..x/%2F%e9.", uint64(0xffff))
	steps := weburl.Steps{NormalizeEscapes: true}
	f.Fuzz(func(t *testing.T, in string, choice uint64) {
		url, err := steps.Canonical(in)
		if err != nil || len(url) > weburl.MaxLength/3 || strayPercent.MatchString(url) {
			t.Skip()
		}
		slash := strings.Index(url, "://") + len("://")
		slash += strings.IndexByte(url[slash:], '/')
		spelled := []byte(url[:slash])
		for i := slash; i < len(url); i++ {
			switch c := url[i]; {
			case c == '%':
				spelled = append(spelled, strings.ToLower(url[i:i+3])...)
				i += 2
			case choice>>(i%64)&1 != 0 && isUnreserved(c):
				spelled = fmt.Appendf(spelled, "%%%02x", c)
			default:
				spelled = append(spelled, c)
			}
		}
		if got, err := steps.Canonical(string(spelled)); err != nil || got != url {
			t.Errorf("%q becomes %q, %v, want %q", spelled, got, err, url)
		}
	})
}

func isUnreserved(c byte) bool {
	return strings.IndexByte("-._~", c) >= 0 || unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c))
}

// FuzzDroppedParams inserts parameters that the steps drop anywhere into a query. That must change
// nothing.
func FuzzDroppedParams(f *testing.F) {
	f.Add("https://a.test/?b=1&a=2&a=1", uint8(1))
	f.Add("https://a.test/x", uint8(0))
	f.Add("https://a.test/?&&=&PHPSESSID", uint8(2))
	dropped := []string{"utm_source=x", "GCLID=1", "phpsessid=1", "sid=0123456789abcdef", "mtm_="}
	steps := weburl.Steps{DropTracking: true, DropSessions: true}
	f.Fuzz(func(t *testing.T, in string, at uint8) {
		url, err := weburl.Canonical(in)
		path, query, found := strings.Cut(url, "?")
		if err != nil || found && query == "" || len(url)+50 > weburl.MaxLength {
			t.Skip() // an empty query stays, but one that becomes empty is dropped
		}
		var params []string
		if found {
			params = strings.Split(query, "&")
		}
		place := int(at) % (len(params) + 1)
		more := slices.Insert(slices.Clone(params), place, dropped[int(at)%len(dropped)])
		want, err1 := steps.Canonical(url)
		got, err2 := steps.Canonical(path + "?" + strings.Join(more, "&"))
		if err1 != nil || err2 != nil || got != want {
			t.Errorf("%q becomes %q, but with %q %q: %v, %v", url, want, more, got, err1, err2)
		}
	})
}

// FuzzPartsAgree compares the results of Host, Site and SURT for one URL.
func FuzzPartsAgree(f *testing.F) {
	f.Add("https://www.news.example.co.uk:8443/today?a)b,c")
	f.Add("http://[2001:db8::1]:81/")
	f.Add("http://example.com./")
	f.Add("http://192.0.2.1/")
	f.Add("http://a..b/")
	f.Fuzz(func(t *testing.T, in string) {
		url, err := weburl.Canonical(in)
		if err != nil {
			t.Skip()
		}
		host, site, key := weburl.Host(url), weburl.Site(url), weburl.SURT(url)
		if strings.ContainsAny(host, ",)") {
			t.Skip() // no real host name has these
		}
		bare := strings.TrimSuffix(host, ".")
		if bare != site && !strings.HasSuffix(bare, "."+site) {
			t.Errorf("%q has host %q and site %q", url, host, site)
		}
		_, rest, _ := strings.Cut(url, "://")
		path := rest[strings.IndexByte(rest, '/'):]
		reversed, found := strings.CutSuffix(key, ")"+path)
		name, _, _ := strings.Cut(reversed, ":")
		labels := strings.Split(name, ",")
		slices.Reverse(labels)
		isName := !strings.Contains(host, ":") && strings.Join(labels, ".") == bare
		isAddress := strings.HasPrefix(reversed, host) || strings.HasPrefix(reversed, "["+host+"]")
		if !found || !isName && !isAddress {
			t.Errorf("%q has host %q and key %q", url, host, key)
		}
		other := "http" + strings.TrimPrefix(strings.TrimPrefix(url, "http"), "s")
		if again := weburl.SURT(other); again != key {
			t.Errorf("%q has key %q, but %q has %q", url, key, other, again)
		}
		siteKey := strings.TrimSuffix(weburl.SURT("http://"+site+"./"), ")/")
		if len(labels) > 1 && !strings.HasPrefix(key, siteKey) {
			t.Errorf("%q has key %q, its site %q", url, key, siteKey)
		}
	})
}
