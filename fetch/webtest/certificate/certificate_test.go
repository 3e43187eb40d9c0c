package certificate

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// A spider is a polite crawler, except for its vices.
type spider struct {
	t     *testing.T
	trial *Trial
	vices map[string]bool
	http  *http.Client

	ready map[string]time.Time // of hosts and addresses
	pause map[string]time.Duration
	read  map[string]bool // hosts whose robots.txt was read
	met   map[string]bool
	queue []string
}

func newSpider(t *testing.T, trial *Trial, vices ...string) *spider {
	s := &spider{
		t: t, trial: trial, vices: map[string]bool{}, http: trial.Web.Client(), ready: map[string]time.Time{},
		pause: map[string]time.Duration{}, read: map[string]bool{}, met: map[string]bool{},
	}
	for _, v := range vices {
		s.vices[v] = true
	}
	transport := s.http.Transport.(*http.Transport)
	transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "127.16.0.1:80"})
	s.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(transport.CloseIdleConnections)
	return s
}

// wait waits for the host of u, and for its address unless that is a vice.
func (s *spider) wait(u *url.URL, also time.Duration) {
	keys := []string{u.Host}
	if h, ok := s.trial.Web.Host(u.Host); ok && !s.vices["address"] {
		keys = append(keys, h.Addr.String())
	}
	for _, k := range keys {
		if !s.vices["host"] {
			time.Sleep(time.Until(s.ready[k]))
		}
	}
	for i, k := range keys {
		s.ready[k] = time.Now().Add(s.trial.Delay)
		if i == 0 {
			s.ready[k] = time.Now().Add(max(s.trial.Delay, also))
		}
	}
}

func (s *spider) get(raw string, also time.Duration) (status int, header http.Header, body string) {
	u, err := url.Parse(raw)
	require.NoError(s.t, err)
	s.wait(u, also)
	resp, err := s.http.Get(raw)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, resp.Header, string(text)
}

var (
	crawlDelay = regexp.MustCompile(`(?i)crawl-delay: (\d+)`)
	hrefs      = regexp.MustCompile(`(?i)href\s*=\s*["']?([^"'> ]+)`)
)

func (s *spider) add(raw string) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" {
		return
	}
	u.Fragment = ""
	if addr, err := netip.ParseAddr(u.Host); err == nil && addr.IsPrivate() && !s.vices["private"] {
		return
	}
	if strings.HasPrefix(u.Path, "/private/") && !s.vices["disallowed"] || s.met[u.String()] {
		return
	}
	s.met[u.String()] = true
	s.queue = append(s.queue, u.String())
}

func (s *spider) crawl() {
	s.add(s.trial.Seed())
	for len(s.queue) > 0 {
		raw := s.queue[0]
		s.queue = s.queue[1:]
		s.visit(raw)
		if s.vices["twice"] {
			delete(s.vices, "twice")
			s.visit(raw)
		}
	}
}

func (s *spider) visit(raw string) {
	u, err := url.Parse(raw)
	require.NoError(s.t, err)
	if !s.read[u.Host] && !s.vices["norobots"] {
		s.read[u.Host] = true
		_, _, rules := s.get("http://"+u.Host+"/robots.txt", 0)
		if m := crawlDelay.FindStringSubmatch(rules); m != nil && !s.vices["crawldelay"] {
			n, _ := strconv.Atoi(m[1])
			s.pause[u.Host] = time.Duration(n) * time.Second
		}
	}
	status, header, body := s.get(raw, s.pause[u.Host])
	if to, err := u.Parse(header.Get("Location")); err == nil && status/100 == 3 {
		if s.vices["redirects"] {
			resp, err := s.http.Get(to.String())
			require.NoError(s.t, err)
			resp.Body.Close()
			s.met[to.String()] = true
			return
		}
		s.add(to.String())
		return
	}
	if status == 429 {
		seconds, _ := strconv.Atoi(header.Get("Retry-After"))
		if !s.vices["retryafter"] {
			s.ready[u.Host] = time.Now().Add(time.Duration(seconds) * time.Second)
		}
		s.queue = append(s.queue, raw)
		return
	}
	base := u
	if m := regexp.MustCompile(`<base href="([^"]+)`).FindStringSubmatch(body); m != nil {
		base, err = url.Parse(m[1])
		require.NoError(s.t, err)
	}
	body = regexp.MustCompile(`(?s)<!--.*?-->|<script>.*?</script>`).ReplaceAllString(body, "")
	for _, m := range hrefs.FindAllStringSubmatch(body, -1) {
		link := strings.NewReplacer("&amp;", "&", "&#x2F;", "/").Replace(m[1])
		if to, err := base.Parse(strings.TrimSpace(link)); err == nil {
			s.add(to.String())
		}
	}
}

// TestEachViceFailsItsCheck sends a polite crawler, and then one for each vice.
func TestEachViceFailsItsCheck(t *testing.T) {
	for vice, want := range map[string][]string{
		"":           nil,
		"host":       {"host delay", "address delay", "Crawl-delay"}, // all at one instant
		"address":    {"address delay"},
		"disallowed": {"robots.txt", "redirects to other hosts"},
		"norobots":   {"robots.txt"},
		"crawldelay": {"Crawl-delay"},
		"retryafter": {"Retry-After"},
		"redirects":  {"robots.txt", "redirects to other hosts"},
		"private":    {"private addresses"},
		"twice":      {"twice"},
	} {
		t.Run(vice, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trial, err := Start(Options{
					Web: webtest.Options{Network: memnet.New()}, Proxied: true, Complete: true,
				})
				require.NoError(t, err)
				defer trial.Web.Close()
				newSpider(t, trial, vice).crawl()
				failed := map[string]Verdict{}
				for _, v := range trial.Verdicts() {
					if v.Result == Failed {
						failed[v.Check] = v
					}
					if vice == "" {
						require.Equal(t, Passed, v.Result, v)
					}
				}
				for _, check := range want {
					require.Contains(t, slices.Collect(maps.Keys(failed)), check)
					v := failed[check]
					require.Len(t, v.Proof, v.Count)
					for _, p := range v.Proof {
						require.NotEmpty(t, p.Text)
						require.NotEmpty(t, p.Requests)
						require.NotContains(t, p.Text, "950ms", "the slack is no delay")
					}
				}
				if vice != "redirects" { // which may be early in two ways, and fetch twice
					require.ElementsMatch(t, want, slices.Collect(maps.Keys(failed)))
				}
			})
		})
	}
}

// Where a crawler reports to, or what a browser asks for by itself, is no part of the web.
func TestOtherNamesAreNotJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trial, err := Start(Options{Web: webtest.Options{Network: memnet.New()}, Proxied: true})
		require.NoError(t, err)
		defer trial.Web.Close()
		s := newSpider(t, trial)
		for _, url := range []string{"http://metrics.example/", "http://172.17.0.2:9091/", "http://93.184.216.34/"} {
			for range 2 {
				resp, err := s.http.Get(url)
				require.NoError(t, err)
				resp.Body.Close()
			}
		}
		for _, v := range trial.Verdicts()[:8] {
			require.Equal(t, Untested, v.Result, v)
		}
	})
}

// Who knows no pause, but comes after slow answers only, has not kept any.
func TestSlowAnswersProveNoPause(t *testing.T) {
	for way := time.Duration(0); way < instant; way += instant / 4 {
		synctest.Test(t, func(t *testing.T) {
			v := visit(t, webtest.Options{Hosts: 4, Addrs: 2, Traits: func(int) webtest.Traits {
				return webtest.Traits{Latency: webtest.Latency{Median: 3 * time.Second}}
			}})
			for _, host := range []int{2, 0, 1} {
				for i := range 12 {
					v.get(v.at(host) + []string{"robots.txt", strconv.Itoa(i)}[min(i, 1)])
					time.Sleep(way)
				}
			}
			for _, verdict := range v.trial.Verdicts()[:5] {
				require.Equal(t, Untested, verdict.Result, verdict)
			}
		})
	}
}

func TestNothingIsProvenByNothing(t *testing.T) {
	for _, complete := range []bool{false, true} {
		trial, err := Start(Options{Web: webtest.Options{Hosts: 1}, Complete: complete})
		require.NoError(t, err)
		for _, v := range trial.Verdicts() {
			want := map[bool]Result{false: Partial, true: Failed}[complete]
			if v.Check != "completeness" {
				want = Untested
			}
			require.Equal(t, want, v.Result, v)
		}
		require.NoError(t, trial.Web.Close())
	}
	for _, o := range []Options{{Delay: -1}, {Web: webtest.Options{NoLog: true}}} {
		_, err := Start(o)
		require.Error(t, err)
	}
}

func TestReports(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	request := webtest.Request{
		Time: at, Host: "a.test", Addr: netip.MustParseAddr("127.16.0.1"), Method: "GET", Path: "/x", Status: 200,
		UserAgent: "evil\x1b[2J",
	}
	var proofs []Proof
	for range 5 {
		proofs = append(proofs, Proof{"too <early>", []webtest.Request{request}})
	}
	verdicts := []Verdict{
		{"host delay", Failed, 5, "5 of 9 requests", proofs}, {"robots.txt", Passed, 0, "0 of 9", nil},
		{"Crawl-delay", Untested, 0, "0 of 0", nil}, {"completeness", Partial, 1, "1 of 2", []Proof{{Text: "y was missed"}}},
	}
	var out bytes.Buffer
	require.NoError(t, WriteTable(&out, verdicts))
	require.Contains(t, out.String(), "host delay    FAILED    5 of 9 requests\n")
	require.Contains(t, out.String(), "\nhost delay:\n  too <early>\n    00:00:00.000  127.16.0.1  GET http://a.test/x  200  "+
		`"evil\x1b[2J"`+"\n")
	require.Contains(t, out.String(), "  and 2 more\n\ncompleteness:\n  y was missed\n")

	out.Reset()
	require.NoError(t, WriteJSON(&out, verdicts))
	var back []Verdict
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	require.Equal(t, verdicts, back)

	out.Reset()
	require.NoError(t, WriteJUnit(&out, verdicts))
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Cases    []struct {
			Name    string  `xml:"name,attr"`
			Failure *string `xml:"failure"`
		} `xml:"testcase"`
	}
	require.NoError(t, xml.Unmarshal(out.Bytes(), &suite))
	require.Equal(t, []int{4, 1, 2}, []int{suite.Tests, suite.Failures, suite.Skipped})
	require.Contains(t, *suite.Cases[0].Failure, "too <early>")
	require.Nil(t, suite.Cases[1].Failure)
}

// Who stays on its host has left out no link to a disallowed page elsewhere.
func TestOtherHostsTemptNobody(t *testing.T) {
	results := map[Result]int{}
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			v := visit(t, webtest.Options{Seed: seed, Hosts: 4})
			v.slowly(v.at(0) + "robots.txt")
			v.all(0)
			own := slices.ContainsFunc(v.trial.Web.Log(), func(r webtest.Request) bool {
				return slices.ContainsFunc(v.trial.Web.Links(r.URL()), func(to string) bool {
					return strings.HasPrefix(to, v.at(0)) && !v.trial.Web.Allows(to)
				})
			})
			require.Equal(t, map[bool]Result{true: Passed, false: Untested}[own], v.result("robots.txt"))
			results[v.result("robots.txt")]++
		})
	}
	require.Len(t, results, 2)
}
