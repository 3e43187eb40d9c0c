package export

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
)

// The keys are those of the surt library.
func TestSurtVectors(t *testing.T) {
	vectors, err := os.ReadFile("testdata/surt.txt")
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(vectors)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var url, want string
		_, err := fmt.Sscanf(line, "%q %q", &url, &want)
		require.NoError(t, err, line)
		require.Equal(t, want, surt(url), "%q", url)
		n++
	}
	require.Greater(t, n, 80)
}

// unescapeAll decodes escapes in repeated passes until none is left.
func unescapeAll(s string) string {
	for {
		var b []byte
		for i := 0; i < len(s); i++ {
			if s[i] == '%' && i+3 <= len(s) {
				if c, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
					b = append(b, c...)
					i += 2
					continue
				}
			}
			b = append(b, s[i])
		}
		if string(b) == s {
			return s
		}
		s = string(b)
	}
}

// slow is a simple surt on the parts of net/url, with repeated passes.
func slow(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	escapeAll := func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			if c > ' ' && c < 0x7f && c != '#' && c != '%' {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "%%%02x", c)
			}
		}
		return strings.ToLower(b.String())
	}
	host := strings.ToLower(u.Hostname())
	if first, rest, found := strings.Cut(host, "."); found &&
		strings.HasPrefix(first, "www") && strings.Trim(first[3:], "0123456789") == "" {
		host = rest
	}
	labels := strings.Split(host, ".")
	slices.Reverse(labels)
	key := strings.Join(labels, ",")
	if p := u.Port(); p != "" && u.Scheme+p != "http80" && u.Scheme+p != "https443" {
		key += ":" + p
	}
	path := escapeAll(unescapeAll(u.EscapedPath()))
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	key += ")/" + strings.Trim(path, "/")
	if u.RawQuery != "" {
		args := strings.Split(escapeAll(unescapeAll(u.RawQuery)), "&")
		sort.Strings(args)
		key += "?" + strings.Join(args, "&")
	}
	return key
}

// crawl returns random URLs with many features that canonicalization removes.
func crawl(r *rand.Rand, n int) (urls []string) {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	for i := range n {
		urls = append(urls, fmt.Sprintf("%s://%s%s%s%s/%s%d%s%s", pick("http", "https"),
			pick("", "www.", "www2.", "a.b.", "WWW."), pick("Example", "x-y", "zz"),
			pick(".org", ".test"), pick("", ":8080", ":80", ":443"),
			pick("", "dir/", "Dir//", "a%2fb/", "%C3%A4/", "~u/", "%7Eu/"),
			i, pick("", "/", ".html", "//", "%20x", "/index.php/"),
			pick("", "?", "?b=2&a=1", "?q=%2525&Q=x+y", "?a=http%3A%2F%2Fb%2F", "?x&x=&x=1")))
	}
	return urls
}

func TestSurtMatchesSlow(t *testing.T) {
	for _, url := range crawl(rand.New(rand.NewPCG(1, 2)), 20_000) {
		require.Equal(t, slow(url), surt(url), url)
	}
}

// FuzzSurt asserts that one pass decodes escapes like repeated passes, and that for any URL a line
// has a key, a time and JSON.
func FuzzSurt(f *testing.F) {
	f.Add("http://www.example.org:8080/a/../%2525?b&a")
	f.Add("http://[::1]/(S(4hqa0555fwsecu455xqckv45))/x.aspx")
	f.Add("%25%32%35%%2525")
	f.Fuzz(func(t *testing.T, url string) {
		require.Equal(t, unescapeAll(url), string(unescape([]byte(url))))
		require.LessOrEqual(t, len(surt(url)), 9*len(url)+len("http://)/"))
		v := archive.Version{URL: url, Time: time.Unix(0, 0).UTC()}
		line := line{Filename: "f"}.append(nil, &v)
		fields := bytes.SplitN(line, []byte(" "), 3)
		require.Equal(t, "19700101000000", string(fields[1]))
		require.True(t, json.Valid(fields[2]))
		require.Equal(t, -1, bytes.IndexByte(line, '\n'))
	})
}

// lookup works like pywb: it canonicalizes the URL, computes a range of keys, and searches the
// sorted lines for it.
func lookup(lines []string, url, match string) (found []string) {
	start := slow(url)
	end := start + "!"
	next := func(s string) string { return s[:len(s)-1] + string(s[len(s)-1]+1) }
	switch match {
	case "prefix":
		if strings.HasSuffix(url, "/") && !strings.HasSuffix(start, "/") {
			start += "/"
		}
		end = next(start)
	case "host":
		host, _, _ := strings.Cut(start, ")/")
		start, end = host+")/", host+"*"
	case "domain":
		host, _, _ := strings.Cut(start, ")/")
		start, end = host+")/", host+"-"
	}
	low, _ := slices.BinarySearch(lines, start)
	high, _ := slices.BinarySearch(lines, end)
	return lines[low:high]
}

// Every URL of a crawl is found, by itself and by its prefix, host and domain.
func TestEveryURLIsFound(t *testing.T) {
	a, err := archive.Open(t.TempDir(), archive.Options{Level: -1, NoBlockDigest: true})
	require.NoError(t, err)
	defer a.Close()
	urls := crawl(rand.New(rand.NewPCG(3, 4)), 10_000)
	for i, url := range urls {
		_, err := a.Append(archive.Capture{URL: url, Time: time.Unix(1.7e9+int64(i), 0),
			Head: []byte("HTTP/1.1 200 OK\r\n\r\n"), Body: []byte(url)})
		require.NoError(t, err)
	}
	var out bytes.Buffer
	require.NoError(t, CDXJ(&out, a))
	var lines []string
	for scanner := bufio.NewScanner(&out); scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	require.Len(t, lines, len(urls))
	require.True(t, slices.IsSorted(lines))
	for i, url := range urls {
		v, err := a.At(url, time.Time{})
		require.NoError(t, err)
		for _, match := range []string{"exact", "prefix", "host", "domain"} {
			at := url
			if match == "prefix" {
				at = url[:strings.Index(url[8:], "/")+9]
			}
			found := slices.ContainsFunc(lookup(lines, at, match), func(line string) bool {
				var f struct{ URL, Offset string }
				_ = json.Unmarshal([]byte(line[strings.Index(line, "{"):]), &f)
				return f.URL == v.URL && f.Offset == fmt.Sprint(v.Location.Offset)
			})
			require.True(t, found, "%s by its %s", url, match)
			if i%500 > 0 {
				break // the other matches return thousands of lines each
			}
		}
	}
}
