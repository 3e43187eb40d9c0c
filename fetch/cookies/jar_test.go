package cookies_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch/cookies"
	"github.com/stretchr/testify/require"
)

func parse(t testing.TB, raw string) *url.URL {
	u, err := url.Parse(raw)
	require.NoError(t, err)
	return u
}

// set gives a jar the fields Set-Cookie of a response.
func set(t testing.TB, jar http.CookieJar, page string, fields ...string) {
	resp := http.Response{Header: http.Header{"Set-Cookie": fields}}
	jar.SetCookies(parse(t, page), resp.Cookies())
}

// sent returns the field Cookie of a request.
func sent(t testing.TB, jar http.CookieJar, page string) string {
	req := &http.Request{Header: http.Header{}}
	for _, c := range jar.Cookies(parse(t, page)) {
		req.AddCookie(c)
	}
	return req.Header.Get("Cookie")
}

// suffixes is the public suffix list of the jar that ours is compared with.
type suffixes struct{}

func (suffixes) PublicSuffix(domain string) string { return cookies.PublicSuffix(domain) }
func (suffixes) String() string                    { return "" }

var (
	modelHosts = []string{
		"a.test", "www.a.test", "x.www.a.test", "b.test", "a.co.uk", "co.uk", "localhost", "test", "127.0.0.1", "[::1]",
		"A.test.", "xn--bcher-kva.test", "u.github.io", "v.github.io",
	}
	modelDomains = []string{
		"a.test", ".a.test", "WWW.A.test", "test", "co.uk", ".co.uk", "127.0.0.1", "::1", "[::1]", "b.test", ".", "..a.test",
		"a.test.", "github.io", "u.github.io", "bücher.test", "xn--bcher-kva.test", "localhost", "",
	}
	modelPaths = []string{"", "/", "/a", "/a/", "/a/b", "/a/b/", "/ab", "/a/b/c?q", "/%61/b", "//a"}
)

// randomCookie returns a field Set-Cookie.
func randomCookie(random *rand.Rand) string {
	pick := func(of []string) string { return of[random.IntN(len(of))] }
	field := fmt.Sprintf("%s=%d", pick([]string{"n", "m", "o"}), random.IntN(1000))
	if random.IntN(8) == 0 {
		field = `q="quoted value"`
	}
	for range random.IntN(4) {
		switch random.IntN(5) {
		case 0:
			field += "; Domain=" + pick(modelDomains)
		case 1:
			field += "; Path=" + pick(modelPaths)
		case 2:
			field += "; Secure; HttpOnly; SameSite=Lax"
		case 3:
			field += fmt.Sprintf("; Max-Age=%d", random.IntN(200)-20)
		case 4:
			at := time.Now().Add(time.Duration(random.IntN(200)-20) * time.Second)
			field += "; Expires=" + at.UTC().Format(http.TimeFormat)
		}
	}
	return field
}

// Within the bounds, a Jar does what the standard library's jar does.
func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 0))
				ours := new(cookies.Jar)
				theirs, err := cookiejar.New(&cookiejar.Options{PublicSuffixList: suffixes{}})
				require.NoError(t, err)
				got := 0
				for range 1500 {
					host := modelHosts[random.IntN(len(modelHosts))]
					scheme := []string{"http", "https", "https", "ftp"}[random.IntN(4)]
					if host == "localhost" || host == "127.0.0.1" || host == "[::1]" {
						scheme = "https" // there the standard jar also sends Secure cookies over http
					}
					port := []string{"", ":8080"}[random.IntN(2)]
					if host == "[::1]" {
						port = ":8080" // without a port, the standard jar keeps the brackets: another host
					}
					page := scheme + "://" + host + port + modelPaths[random.IntN(len(modelPaths))]
					want := sent(t, theirs, page) // also forgets what has expired, as ours does when a cookie is set
					require.Equal(t, want, sent(t, ours, page), page)
					got += strings.Count(want, "=")
					fields := []string{}
					for range random.IntN(3) {
						fields = append(fields, randomCookie(random))
					}
					set(t, ours, page, fields...)
					set(t, theirs, page, fields...)
					time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond)
				}
				require.Greater(t, got, 1000, "too few cookies for a meaningful test")
			})
		})
	}
}

func TestRulesThatAreStricter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jar := new(cookies.Jar)
		set(t, jar, "http://localhost/", "a=1; Secure")
		require.Empty(t, sent(t, jar, "http://localhost/"))
		require.Equal(t, "a=1", sent(t, jar, "https://localhost/"))

		set(t, jar, "https://a.test/", "age=1; Max-Age=99999999999", "date=1; Expires=Fri, 31 Dec 9999 23:59:59 GMT", "session=1")
		time.Sleep(cookies.MaxAge - time.Nanosecond)
		require.Equal(t, "age=1; date=1; session=1", sent(t, jar, "https://a.test/"))
		time.Sleep(time.Nanosecond)
		require.Equal(t, "session=1", sent(t, jar, "https://a.test/"))

		long := strings.Repeat("x", 1024)
		set(t, jar, "https://b.test/dir/page", "path=1; Path=/"+long, "domain=1; Domain="+long+".test")
		require.Equal(t, "path=1; domain=1", sent(t, jar, "https://b.test/dir/x"), "long attributes are ignored")
		require.Empty(t, sent(t, jar, "https://b.test/"+long))
		set(t, jar, "https://c.test/"+long+"/", "too-deep=1")
		require.Empty(t, sent(t, jar, "https://c.test/"+long+"/"))
		set(t, jar, "https://c.test/", strings.Repeat("n", 96)+"="+strings.Repeat("v", 4001), "fits="+strings.Repeat("v", 4092))
		require.Len(t, sent(t, jar, "https://c.test/"), 4097)
	})
}

// International names have one form, as in requests.
func TestInternationalHosts(t *testing.T) {
	jar := new(cookies.Jar)
	set(t, jar, "http://bücher.test/", "a=1; Domain=xn--bcher-kva.test")
	for _, host := range []string{"BÜCHER.test", "xn--bcher-kva.test.", "www.bücher.test"} {
		require.Equal(t, "a=1", sent(t, jar, "http://"+host+"/"), host)
	}
}

// flood makes a site set many cookies.
func flood(t testing.TB, jar *cookies.Jar, page string, n int, value string) {
	fields := make([]string, 0, 500)
	for i := range n {
		fields = append(fields, fmt.Sprintf("c%d=%s", i, value))
		if len(fields) == cap(fields) || i == n-1 {
			set(t, jar, page, fields...)
			fields = fields[:0]
		}
	}
}

// A site that sets too many cookies evicts the least recently used of its own.
func TestBoundOfASite(t *testing.T) {
	jar := new(cookies.Jar)
	set(t, jar, "https://other.test/", "kept=1")
	set(t, jar, "https://www.a.test/in/", "first=1; Domain=a.test; Path=/", "elsewhere=1; Path=/in")
	require.Equal(t, "first=1", sent(t, jar, "https://www.a.test/"))
	for i := range 100 {
		flood(t, jar, fmt.Sprintf("https://h%d.a.test/", i), cookies.MaxSite-1, "v")
		require.Equal(t, "first=1", sent(t, jar, "https://www.a.test/"), "it is in use")
		require.LessOrEqual(t, jar.Held(), cookies.MaxSite+1)
	}
	require.Equal(t, "first=1", sent(t, jar, "https://www.a.test/in/"), "the other was evicted")
	require.Equal(t, "kept=1", sent(t, jar, "https://other.test/"))
	require.Equal(t, cookies.MaxSite+1, jar.Held())

	flood(t, jar, "https://big.test/", 1000, strings.Repeat("v", 4000))
	require.InDelta(t, cookies.MaxSiteBytes/4000, jar.Held()-cookies.MaxSite-1, 1)
}

// One host of a site can set so many cookies for all of it that servers would refuse the requests to
// the others. What is sent is bounded, and first come the cookies of the host, which the others cannot
// make.
func TestBoundOfARequest(t *testing.T) {
	jar := new(cookies.Jar)
	require.NoError(t, jar.Load(strings.NewReader(".a.test\tTRUE\t/\tFALSE\t0\tloaded\t"+strings.Repeat("v", 4000)+"\n")))
	for i := range 12 {
		set(t, jar, "http://evil.a.test/", fmt.Sprintf("e%d=%s; Domain=a.test; Path=/", i, strings.Repeat("v", 4000-i)))
	}
	set(t, jar, "http://www.a.test/", "small=1; Domain=a.test; Path=/", "long=1; Domain=a.test; Path=/in")
	for i := range 3 {
		set(t, jar, "http://www.a.test/in/", fmt.Sprintf("own%d=%s; Path=/", i, strings.Repeat("v", 1300)))
	}
	names := func(page string) (names []string) {
		field := sent(t, jar, page)
		require.LessOrEqual(t, len(field), cookies.MaxSent+4010, "with those of the operator")
		for c := range strings.SplitSeq(field, "; ") {
			name, _, _ := strings.Cut(c, "=")
			names = append(names, name)
		}
		return names
	}
	require.Equal(t, []string{"long", "loaded", "e0", "small", "own0", "own1", "own2"}, names("http://www.a.test/in/"))
	require.Equal(t, []string{"loaded", "e0", "e1", "small"}, names("http://new.a.test/"), "a small one may still fit")
}

// Of all cookies, the least recently used ones go first, but only if no expired ones are left.
func TestBoundOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jar := new(cookies.Jar)
		page := func(i int) string { return fmt.Sprintf("https://h%d.test/", i) }
		for i := range cookies.MaxCookies {
			set(t, jar, page(i), "a=1")
		}
		for i := range 100 {
			require.Equal(t, "a=1", sent(t, jar, page(i)))
		}
		require.Equal(t, cookies.MaxCookies, jar.Held())
		set(t, jar, page(cookies.MaxCookies), "a=1")
		require.Equal(t, cookies.KeptCookies, jar.Held())
		for i := range cookies.MaxCookies + 1 {
			evicted := i >= 100 && i <= 100+cookies.MaxCookies-cookies.KeptCookies // one more, for the new one
			require.Equal(t, evicted, sent(t, jar, page(i)) == "", i)
		}

		for i := range cookies.MaxCookies - cookies.KeptCookies {
			set(t, jar, page(i), "short=1; Max-Age=1")
		}
		time.Sleep(time.Second)
		set(t, jar, "https://new.test/", "a=1")
		alive := 0
		for i := range cookies.MaxCookies + 1 {
			alive += len(sent(t, jar, page(i))) / len("a=1")
		}
		require.Equal(t, cookies.KeptCookies-1, alive, "one had to go for the new one")
	})
}

// 100,000 fields of the worst kind take no more memory than the docs say.
func TestMemoryIsBounded(t *testing.T) {
	jar := new(cookies.Jar)
	before := heap()
	for i := range 1000 {
		page := fmt.Sprintf("https://host%d.test/", i)
		if i%2 == 0 {
			page = "https://one.test/"
		}
		fields := make([]string, 100)
		for n := range fields {
			fields[n] = fmt.Sprintf("c%d-%d=%s; Path=/%s", i, n, strings.Repeat("v", 500*(i%8)), strings.Repeat("p", 900))
		}
		set(t, jar, page, fields...)
		require.LessOrEqual(t, jar.Held(), 3300)
	}
	require.Less(t, heap(), before+18<<20)
	require.NotZero(t, jar.Held())
}

// What a cookie was cut from, a long field or URL, is not kept with it.
func TestOnlyTheCookieIsKept(t *testing.T) {
	jar, rest := new(cookies.Jar), strings.Repeat("x", 8<<10)
	before := heap()
	for i := range 3000 {
		set(t, jar, fmt.Sprintf("https://h%d.test/d/%s", i, rest), "a=b; X="+rest)
	}
	require.Less(t, heap(), before+4<<20)
	require.Equal(t, 3000, jar.Held())
}

// Thousands of fields that delete a cookie leave no room behind.
func TestDeletedCookiesTakeNoMemory(t *testing.T) {
	jar := new(cookies.Jar)
	before := heap()
	fields := slices.Repeat([]string{"a=;Max-Age=0"}, 2900)
	for i := range 3000 {
		set(t, jar, fmt.Sprintf("https://h%d.test/", i), append(fields, "a="+strings.Repeat("v", 4000))...)
	}
	require.Less(t, heap(), before+18<<20)
	require.Equal(t, 3000, jar.Held())
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// A request costs the same after 1,000 cookies of its site as after 100,000.
func TestCostOfARequestStaysFlat(t *testing.T) {
	jar := new(cookies.Jar)
	u := parse(t, "https://a.test/")
	var costs []float64
	for range 10 {
		flood(t, jar, "https://a.test/", 10_000, "value")
		costs = append(costs, testing.AllocsPerRun(10, func() { jar.Cookies(u) }))
		require.Len(t, jar.Cookies(u), cookies.MaxSite)
	}
	for _, cost := range costs {
		require.InDelta(t, costs[0], cost, 1, "%v", costs)
	}
}

func TestJarIsSafeForConcurrentUse(t *testing.T) {
	jar := new(cookies.Jar)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			page := fmt.Sprintf("https://h%d.test/", i%3)
			for n := range 300 {
				set(t, jar, page, fmt.Sprintf("c%d=1", n))
				sent(t, jar, page)
				if err := jar.Load(strings.NewReader(fmt.Sprintf("h%d.test\tTRUE\t/\tFALSE\t0\tl%d\tx", i%3, n%5))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, 3*cookies.MaxSite, jar.Held())
}

// FuzzJar: no site can set a cookie that another site gets, and the books are right.
func FuzzJar(f *testing.F) {
	f.Add("www.a.test", "a=b; Domain=.a.test; Path=/x; Max-Age=3", "https://a.test/x/y")
	f.Add("a.co.uk", "a=b; Domain=co.uk", "http://b.co.uk/")
	f.Add("127.0.0.1", "a=b; Domain=.", "http://1.127.0.0.1/")
	f.Fuzz(func(t *testing.T, host, field, request string) {
		if len(host) > 300 {
			t.Skip()
		}
		u, err := url.Parse(request)
		if err != nil {
			t.Skip()
		}
		jar := new(cookies.Jar)
		resp := http.Response{Header: http.Header{"Set-Cookie": {field, "x=y"}}}
		from := &url.URL{Scheme: "https", Host: host, Path: "/x/y"}
		jar.SetCookies(from, resp.Cookies())
		jar.SetCookies(from, resp.Cookies())
		if held := jar.Held(); held > 2 {
			t.Errorf("%d cookies", held)
		}
		if got := jar.Cookies(u); len(got) > 0 && cookies.Site(u) != cookies.Site(from) {
			t.Errorf("%q gets %v of %q, set with %q", u, got, from, field)
		}
	})
}

func BenchmarkCookies(b *testing.B) {
	for _, n := range []int{1, 10, 180} {
		b.Run(fmt.Sprintf("cookies=%d", n), func(b *testing.B) {
			jar, u := new(cookies.Jar), parse(b, "https://www.a.test/dir/page")
			flood(b, jar, "https://www.a.test/", n, "value")
			b.ReportAllocs()
			for b.Loop() {
				jar.Cookies(u)
			}
		})
	}
}

func BenchmarkSetCookies(b *testing.B) {
	for _, sites := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("sites=%d", sites), func(b *testing.B) {
			jar, i := new(cookies.Jar), 0
			b.ReportAllocs()
			for b.Loop() {
				u := &url.URL{Scheme: "https", Host: fmt.Sprintf("h%d.test", i%sites), Path: "/"}
				jar.SetCookies(u, []*http.Cookie{{Name: fmt.Sprintf("c%d", i), Value: "v"}})
				i++
			}
		})
	}
}
