package weburl_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

var allSteps = weburl.Steps{
	NormalizeEscapes: true, DropTracking: true, DropSessions: true, DropRootDot: true,
}

func TestSteps(t *testing.T) {
	tracking := weburl.Steps{DropTracking: true}
	sessions := weburl.Steps{DropSessions: true}
	escapes := weburl.Steps{NormalizeEscapes: true}
	for _, tt := range []struct {
		name        string
		steps       weburl.Steps
		input, want string
	}{
		{"none", weburl.Steps{}, "/index.html?utm_source=a&b;jsessionid=1",
			"/index.html?utm_source=a&b;jsessionid=1"},
		{"tracking in the middle", tracking, "/?a=1&utm_source=x&b=2", "/?a=1&b=2"},
		{"tracking at the ends", tracking, "/?gclid=x&a=1&fbclid=y", "/?a=1"},
		{"tracking alone takes the question mark", tracking, "/?utm_id=x&_ga=2", "/"},
		{"an empty query is not tracking", tracking, "/?", "/?"},
		{"empty parameters stay", tracking, "/?&a&&utm_id=x&", "/?&a&&"},
		{"only an empty parameter is left", tracking, "/?utm_id=x&", "/?"},
		{"tracking in capitals", tracking, "/?UTM_Source=x&FBCLID=y&a", "/?a"},
		{"tracking without a value", tracking, "/?gclid&a", "/?a"},
		{"tracking as a value", tracking, "/?a=gclid", "/?a=gclid"},
		{"longer than any name", tracking, "/?ml_subscriber_hash_=x", "/?ml_subscriber_hash_=x"},
		{"longest name", tracking, "/?ml_subscriber_hash=x", "/"},
		{"prefix of a name", tracking, "/?gcli=x", "/?gcli=x"},
		{"escaped name", tracking, "/?%67clid=x", "/?%67clid=x"},
		{"sessions stay with tracking", tracking, "/a;jsessionid=1?PHPSESSID=2",
			"/a;jsessionid=1?PHPSESSID=2"},

		{"session in the query", sessions, "/?PHPSESSID=a&b=1&JSESSIONID=c", "/?b=1"},
		{"random sid", sessions, "/?sid=0123456789abcdef0123456789ABCDEF&a", "/?a"},
		{"short sid", sessions, "/?sid=12ab", "/?sid=12ab"},
		{"number as a sid", sessions, "/?sid=12345678901234567890", "/?sid=12345678901234567890"},
		{"word as a session", sessions, "/?session=internationalization1",
			"/?session=internationalization1"},
		{"sid with other characters", sessions, "/?sid=0123456789abcdef-123",
			"/?sid=0123456789abcdef-123"},
		{"session in the path", sessions, "/a/b.jsp;jsessionid=1F?c", "/a/b.jsp?c"},
		{"session between other path parameters", sessions, "/a;b=1;JSESSIONID=2;c/d", "/a;b=1;c/d"},
		{"session in a directory", sessions, "/a;jsessionid=1/b", "/a/b"},
		{"session without a value", sessions, "/a;jsessionid", "/a;jsessionid"},
		{"session after dots", sessions, "/a/..;jsessionid=1/b", "/a/..;jsessionid=1/b"},
		{"session after escaped dots", sessions, "/a/.%2E;jsessionid=1", "/a/.%2E;jsessionid=1"},
		{"ASP.NET", sessions, "/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "/a.aspx"},
		{"ASP.NET with two ids", sessions, "/a/(A(0123456789abcdefgh)F(0123456789abcdefgh))/b", "/a/b"},
		{"ASP.NET at the end", sessions, "/a/(S(lit3py55t21z5v55vlm25s55))", "/a/"},
		{"ASP.NET alone", sessions, "/(S(lit3py55t21z5v55vlm25s55))", "/"},
		{"ASP.NET with a session", sessions, "/(S(lit3py55t21z5v55vlm25s55));jsessionid=1/a", "/a"},
		{"ASP.NET with a session at the end", sessions, "/a/(S(lit3py55t21z5v55vlm25s55));jsessionid=1", "/a/"},
		{"ASP.NET with another parameter", sessions, "/(S(lit3py55t21z5v55vlm25s55));a;jsessionid=1",
			"/(S(lit3py55t21z5v55vlm25s55));a"},
		{"other parentheses", sessions, "/a_(b)/(S(short))/(x)/()", "/a_(b)/(S(short))/(x)/()"},

		{"unreserved characters", escapes, "/%7ejoe%2D%2e%5F%41%7a?%30=%7E", "/~joe-._Az?0=~"},
		{"case of escapes", escapes, "/%c3%BC%2f?%c3%3d", "/%C3%BC%2F?%C3%3D"},
		{"reserved characters stay encoded", escapes, "/a%2Fb%3Fc%23%25?d%26e%3D%2B", "/a%2Fb%3Fc%23%25?d%26e%3D%2B"},
		{"stray percent signs", escapes, "/%zz%?%g1%", "/%zz%?%g1%"},
		{"no new escape", escapes, "/%%37E?%4%31", "/%%37E?%4%31"},
		{"no new escape in lower case", escapes, "/%%6a%%6b%e%6c", "/%j%k%el"},
		{"an escape after a stray sign", escapes, "/%%41%41x", "/%%41Ax"},
		{"an encoded percent sign", escapes, "/%2541", "/%2541"},
		{"dots that are not a segment", escapes, "/a%2e%2e/%2e%2e%2e", "/a../..."},
		{"no escapes without the step", sessions, "/%7e?%7e", "/%7e?%7e"},
		{"names are compared decoded", weburl.Steps{NormalizeEscapes: true, DropTracking: true},
			"/?%75tm_source=x", "/"},

		{"all", allSteps, "/a.jsp;jsessionid=1?z&utm_id=1&sid=ab&a", "/a.jsp?z&sid=ab&a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.steps.Canonical("https://a.test" + tt.input)
			require.NoError(t, err)
			require.Equal(t, "https://a.test"+tt.want, got)
			again, err := tt.steps.Canonical(got)
			require.NoError(t, err)
			require.Equal(t, got, again)
		})
	}
}

func TestStepsPrecedeTheLengthCheck(t *testing.T) {
	url := longURL(weburl.MaxLength) + "?utm_source=x"
	_, err := weburl.Canonical(url)
	require.ErrorIs(t, err, weburl.ErrTooLong)
	got, err := weburl.Steps{DropTracking: true}.Canonical(url)
	require.NoError(t, err)
	require.Equal(t, longURL(weburl.MaxLength), got)
}

func TestStepsOnACleanURLDoNotAllocate(t *testing.T) {
	const url = "https://a.test/b/c(d);e?a=1&b=2&sid=3"
	require.Zero(t, testing.AllocsPerRun(10, func() {
		steps := allSteps
		steps.DropSessions = false // it rebuilds paths with parameters or parentheses
		if got, err := steps.Canonical(url); got != url || err != nil {
			t.Errorf("Canonical(%q) = %q, %v", url, got, err)
		}
	}))
	const plain = "https://a.test/b/c?a=1&b=2&sid=3"
	require.Zero(t, testing.AllocsPerRun(10, func() { _, _ = allSteps.Canonical(plain) }))
}

// TestManyPathParametersAreReadOnce counts allocations: a copy for each parameter would take
// quadratic time.
func TestManyPathParametersAreReadOnce(t *testing.T) {
	steps := weburl.Steps{DropSessions: true}
	for _, segment := range []string{strings.Repeat(";a", 2000), strings.Repeat(";jsessionid=1;b", 500)} {
		allocs := testing.AllocsPerRun(10, func() { _, _ = steps.Canonical("https://a.test/x" + segment) })
		require.Less(t, allocs, 30.0)
	}
}

func TestTracking(t *testing.T) {
	names := weburl.TrackingNames()
	require.Subset(t, names, []string{"utm_x", "gclid", "fbclid", "msclkid"})
	for _, name := range names {
		require.Equal(t, strings.ToLower(name), name)
		url, err := allSteps.Canonical("https://a.test/?" + name + "=1")
		require.NoError(t, err)
		require.Equal(t, "https://a.test/", url, name)
	}
}

// TestPiecesAreIdempotent joins pieces that mean something to the steps, which the bytes of a fuzzer
// seldom do.
func TestPiecesAreIdempotent(t *testing.T) {
	pieces := []string{
		"/", "//", "..", ".", "%2e", "%2E", "(S(lit3py55t21z5v55vlm25s55))", ";jsessionid=1", ";jsessionid",
		"(A(lit3py55t21z5v55vlm25s55)F(lit3py55t21z5v55vlm25s55))", ";x", "a", "?", "&", "utm_a=1",
		"sid=0123456789abcdef1", "=", "%", "%37", "E", "%25", "2", "#", "\\", "%3b", "%53", "(", "S", ")", " ",
		"lit3py55t21z5v55vlm25s55", "\t", "é", "%41", "%7e", "jsessionid=1", "@", ":",
	}
	random := rand.New(rand.NewPCG(1, 0))
	for i := range 200_000 {
		steps := weburl.Steps{NormalizeEscapes: i&1 > 0, DropTracking: i&2 > 0, DropSessions: i&4 > 0, DropRootDot: true}
		in := []string{"http://a.test/", "http://a.test./", "http://0x1../", "http://./"}[i%4]
		for range 1 + random.IntN(9) {
			in += pieces[random.IntN(len(pieces))]
		}
		once, err := steps.Canonical(in)
		require.NoError(t, err, in)
		twice, err := steps.Canonical(once)
		require.NoError(t, err, in)
		require.Equal(t, once, twice, "%+v: %q", steps, in)
	}
}

// FuzzStepsAreIdempotent tries all choices of steps. Canonicalizing without steps first must not
// change the result.
func FuzzStepsAreIdempotent(f *testing.F) {
	f.Add("https://a.test/;jsessionid=1;b/..;jsessionid=/(S(0123456789abcdef))//index.html?b&a&utm_x",
		uint8(31))
	f.Add("http://a.test/%2e;jsessionid=1/(S(0123456789abcdef))?&&sid=0123456789abcdef&", uint8(2))
	f.Add("http://a.test/%%37E%4%31%2e%2e;jsessionid=1/%69ndex.html?%%%33%33", uint8(63))
	f.Fuzz(func(t *testing.T, in string, choice uint8) {
		steps := weburl.Steps{
			DropTracking:     choice&1 != 0,
			DropSessions:     choice&2 != 0,
			NormalizeEscapes: choice&32 != 0,
			DropRootDot:      choice&64 != 0,
		}
		once, err := steps.Canonical(in)
		if err != nil {
			t.Skip()
		}
		if twice, err := steps.Canonical(once); err != nil || twice != once {
			t.Errorf("%+v: %q becomes %q, then %q, %v", steps, in, once, twice, err)
		}
		plain, err := weburl.Canonical(in)
		if err != nil {
			t.Skip() // too long without the steps
		}
		if twice, err := steps.Canonical(plain); err != nil || twice != once {
			t.Errorf("%+v: %q becomes %q, but %q becomes %q, %v", steps, in, once, plain, twice, err)
		}
		if len(once) > len(plain) {
			t.Errorf("%+v: %q grows to %q", steps, plain, once)
		}
		if plainAgain, err := weburl.Canonical(once); err != nil || plainAgain != once {
			t.Errorf("%+v: %q becomes %q, which becomes %q", steps, in, once, plainAgain)
		}
	})
}

func BenchmarkSteps(b *testing.B) {
	for _, bb := range []struct{ name, url string }{
		{"clean", canonicalURL},
		{"tracked", canonicalURL + "&utm_source=newsletter&utm_medium=email&fbclid=IwAR0123456789"},
	} {
		b.Run("url="+bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = allSteps.Canonical(bb.url)
			}
		})
	}
}

func TestDropRootDot(t *testing.T) {
	for in, want := range map[string]string{
		"http://a.test./x":      "http://a.test/x",
		"http://a.test.:8080/x": "http://a.test:8080/x",
		"http://a.test../x":     "http://a.test../x", // no name
		"http://./x":            "http://./x",
		"https://%2e:8080/x":    "https://.:8080/x",
		"http://127.0.0.1./":    "http://127.0.0.1/",
		"http://a.test/x.":      "http://a.test/x.",
	} {
		got, err := weburl.Steps{DropRootDot: true}.Canonical(in)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	kept, err := weburl.Canonical("http://a.test./")
	require.NoError(t, err)
	require.Equal(t, "http://a.test./", kept)
}
