package webtest

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestLogHasEveryRequest(t *testing.T) {
	w := start(t, Options{Hosts: 2})
	c := client(t, w)
	before := time.Now()
	get(t, c, first+"?x=1#f", "User-Agent", "test/1.0")
	get(t, c, "http://H00001.vweb.test:80/robots.txt", "User-Agent", "")
	_, err := c.Head("http://nobody.vweb.test/")
	require.Error(t, err, "an unknown host is not even dialed")

	log := w.Log()
	require.Len(t, log, 2)
	for _, r := range log {
		require.False(t, r.Time.Before(before))
		before = r.Time
	}
	require.Equal(t, first+"?x=1", log[0].URL())
	require.Equal(t, "test/1.0", log[0].UserAgent)
	require.Equal(t, 404, log[0].Status)
	require.Equal(t, "h00001.vweb.test", log[1].Host, "the name is canonicalized")
	require.Equal(t, "/robots.txt", log[1].Path)
	require.Equal(t, http.MethodGet, log[1].Method)
	require.Equal(t, 200, log[1].Status)
	require.Equal(t, virtualAddr(firstServing, 1), log[1].Addr)
	require.Empty(t, log[1].UserAgent)
}

// TestLogHasRequestsWithoutAPath sends what net/http would answer by itself.
func TestLogHasRequestsWithoutAPath(t *testing.T) {
	w := start(t, Options{Hosts: 1})
	c, err := w.Dial(t.Context(), "tcp", "h00000.vweb.test:80")
	require.NoError(t, err)
	_, err = io.WriteString(c, "OPTIONS * HTTP/1.1\r\nHost: h00000.vweb.test\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Contains(t, string(answer), "HTTP/1.1 405 ")
	require.Len(t, w.Log(), 1)
	require.Equal(t, "*", w.Log()[0].Path)
}

func TestLogOutgrowsItsChunks(t *testing.T) {
	l := newRecorder(true, nil)
	var open []*Request
	for i := range 3*chunk + 1 {
		open = append(open, l.begin(Request{Path: strconv.Itoa(i)}))
	}
	for i, r := range open {
		l.end(r, Request{Status: 200 + i%3})
	}
	log := l.all()
	require.Len(t, log, 3*chunk+1)
	for i, r := range log {
		require.Equal(t, strconv.Itoa(i), r.Path)
		require.Equal(t, 200+i%3, r.Status)
	}
}

func TestLogSharesAgents(t *testing.T) {
	l := newRecorder(true, nil)
	for range 2 {
		header := strings.Repeat("x", 100) + "agent/1"
		l.begin(Request{UserAgent: header[100:]})
	}
	log := l.all()
	require.Equal(t, "agent/1", log[0].UserAgent)
	require.Same(t, unsafe.StringData(log[0].UserAgent), unsafe.StringData(log[1].UserAgent))
}

func TestLogAsTSV(t *testing.T) {
	var out bytes.Buffer
	w, err := Start(Options{Hosts: 1, NoLog: true, LogTSV: &out})
	require.NoError(t, err)
	c := client(t, w)
	get(t, c, first, "User-Agent", "a\tb")
	get(t, c, first+"nothing?a=\"b\"", "User-Agent", "c")
	require.NoError(t, w.Close())
	require.Empty(t, w.Log())

	r := csv.NewReader(&out)
	r.Comma, r.LazyQuotes = '\t', true
	lines, err := r.ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, 2)
	_, err = time.Parse(time.RFC3339Nano, lines[0][0])
	require.NoError(t, err)
	require.Equal(t, []string{"h00000.vweb.test", "127.16.0.1", "GET", first, "200", "a?b"},
		lines[0][1:])
	require.Equal(t, "404", lines[1][5])
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestLogThatCannotBeWrittenIsAnErrorOfClose(t *testing.T) {
	w, err := Start(Options{Hosts: 1, LogTSV: brokenWriter{}})
	require.NoError(t, err)
	get(t, client(t, w), first)
	require.ErrorIs(t, w.Close(), errBroken)
	require.ErrorIs(t, w.Close(), errBroken, "a second Close returns the error as well")
}

// planted is a log of requests written as "seconds host address".
func planted(lines ...string) (log []Request) {
	for _, line := range lines {
		var seconds float64
		var host, addr string
		fmt.Sscan(line, &seconds, &host, &addr)
		log = append(log, Request{
			Time: epoch.Add(time.Duration(seconds * float64(time.Second))),
			Host: host, Addr: netip.MustParseAddr(addr),
		})
	}
	return log
}

func perHost(host string) time.Duration {
	return map[string]time.Duration{"a": 5 * time.Second, "b": time.Second}[host]
}

func perAddr(netip.Addr) time.Duration { return time.Second }

func TestViolations(t *testing.T) {
	for _, tt := range []struct {
		name string
		log  []Request
		want []string // "rule host earlier later"
	}{
		{"nothing", nil, nil},
		{"exactly the delay", planted("0 a 127.0.0.1", "5 a 127.0.0.1", "10 a 127.0.0.1"), nil},
		{"separate hosts", planted("0 a 127.0.0.1", "0 b 127.0.0.2", "1 b 127.0.0.2"), nil},
		{"too soon on a host", planted("0 a 127.0.0.1", "4.9 a 127.0.0.1"),
			[]string{"host a 0s 4.9s"}},
		{"two hosts on one address", planted("0 a 127.0.0.1", "0.5 b 127.0.0.1"),
			[]string{"addr b 0s 500ms"}},
		{"one host on two addresses", planted("0 a 127.0.0.1", "2 a 127.0.0.2"),
			[]string{"host a 0s 2s"}},
		{"both at once", planted("0 b 127.0.0.1", "0.5 b 127.0.0.1"),
			[]string{"host b 0s 500ms", "addr b 0s 500ms"}},
		{"each of a burst except the first", planted("0 a 127.0.0.1", "2 a 127.0.0.1",
			"4 a 127.0.0.1"), []string{"host a 0s 2s", "host a 2s 4s"}},
		{"out of order", planted("5 a 127.0.0.1", "0 a 127.0.0.1", "4 a 127.0.0.1"),
			[]string{"host a 0s 4s", "host a 4s 5s"}},
		{"hosts without a delay", planted("0 c 127.0.0.1", "1 c 127.0.0.1"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, v := range Violations(tt.log, perHost, perAddr) {
				rule, want := "host", perHost(v.Later.Host)
				if v.ByAddr {
					rule, want = "addr", perAddr(v.Later.Addr)
				}
				require.Equal(t, want, v.Want)
				require.Equal(t, v.Later.Time.Sub(v.Earlier.Time), v.Gap)
				got = append(got, fmt.Sprint(rule, " ", v.Later.Host, " ",
					v.Earlier.Time.Sub(epoch), " ", v.Later.Time.Sub(epoch)))
			}
			require.Equal(t, tt.want, got)
		})
	}
	require.Empty(t, Violations(planted("0 a 127.0.0.1", "0 a 127.0.0.1"), nil, nil))
}

// Planting n early requests in a polite log yields exactly n violations.
func TestViolationsFindsWhatWasPlanted(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		var log []Request
		bad := 0
		for i := range 200 {
			at := float64(i) * 2
			log = append(log, planted(fmt.Sprint(at, " b 127.0.0.1"))...)
			if r.IntN(10) == 0 { // over 1 s after one neighbor, under 1 s before the other
				log = append(log, planted(fmt.Sprint(at+1+r.Float64()*0.9+0.05, " b 127.0.0.1"))...)
				bad++
			}
		}
		r.Shuffle(len(log), func(i, j int) { log[i], log[j] = log[j], log[i] })
		// The request after the very last planted one may be missing.
		found := Violations(log, perHost, nil)
		last := log[0]
		for _, l := range log {
			if l.Time.After(last.Time) {
				last = l
			}
		}
		if last.Time.After(epoch.Add(398 * time.Second)) {
			bad--
		}
		require.Len(t, found, bad, "seed %d", seed)
	}
}

func TestViolationsOnARealLog(t *testing.T) {
	w := start(t, Options{Hosts: 3, Addrs: 1})
	c := client(t, w)
	for h := range w.Hosts() {
		for range 3 {
			get(t, c, h.URL())
		}
	}
	hour := func(string) time.Duration { return time.Hour }
	require.Len(t, Violations(w.Log(), hour, nil), 6)
	require.Len(t, Violations(w.Log(), nil, func(netip.Addr) time.Duration { return time.Hour }), 8)
	require.Empty(t, Violations(w.Log(), func(string) time.Duration { return 0 }, nil))
	require.True(t, strings.HasPrefix(w.Log()[0].URL(), first))
}

// reference finds violations by comparing each request with all others.
func reference(log []Request) (n int) {
	for i, later := range log {
		var host, addr time.Duration = time.Hour, time.Hour
		for j, earlier := range log {
			gap := later.Time.Sub(earlier.Time)
			if gap < 0 || gap == 0 && j >= i {
				continue
			}
			if earlier.Host == later.Host {
				host = min(host, gap)
			}
			if earlier.Addr == later.Addr {
				addr = min(addr, gap)
			}
		}
		if host < perHost(later.Host) {
			n++
		}
		if addr < perAddr(later.Addr) {
			n++
		}
	}
	return n
}

func TestViolationsAgreesWithTheReference(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var log []Request
		for range 60 {
			line := fmt.Sprintf("%d %c 127.0.0.%d", r.IntN(200), 'a'+rune(r.IntN(3)), 1+r.IntN(3))
			log = append(log, planted(line)...)
		}
		before := fmt.Sprint(log)
		require.Len(t, Violations(log, perHost, perAddr), reference(log), "seed %d", seed)
		require.Equal(t, before, fmt.Sprint(log), "the caller's log is unchanged")
	}
}

func TestLogIsInOrderOfArrival(t *testing.T) {
	l := newRecorder(true, nil)
	for _, r := range planted("3 c 127.0.0.1", "1 a 127.0.0.1", "2 b 127.0.0.1") {
		l.end(l.begin(r), Request{Status: 200})
	}
	var hosts []string
	for _, r := range l.all() {
		hosts = append(hosts, r.Host)
	}
	require.Equal(t, []string{"a", "b", "c"}, hosts)
}

func TestLogFieldsCannotForgeLines(t *testing.T) {
	var out bytes.Buffer
	l := newRecorder(false, &out)
	evil := "x\t200\n2026\r\x00\x7f"
	l.end(l.begin(Request{Host: evil, Path: "/" + evil, Method: evil, UserAgent: evil}), Request{Status: 200})
	require.NoError(t, l.flush())
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	require.Equal(t, 6, strings.Count(out.String(), "\t"))
}

func TestEarlyReportsEachRequestOnce(t *testing.T) {
	web, err := Start(Options{Hosts: 4, Addrs: 2, Pages: 1})
	require.NoError(t, err)
	t.Cleanup(func() { web.Close() })
	client := web.Client()
	for _, host := range []int{0, 0, 1, 2} { // hosts 0 and 2 share an address
		resp, err := client.Get(web.hosts[host].URL())
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	early := web.Early(time.Hour)
	require.Len(t, early, 2)
	require.Equal(t, []bool{false, true}, []bool{early[0].ByAddr, early[1].ByAddr})
	require.Contains(t, early[0].String(), "to host h00000.vweb.test; the delay is 1h0m0s")
	require.Contains(t, early[1].String(), "to address 127.16.0.1 (after http://h00000.vweb.test/)")
	require.Empty(t, web.Early(0))
}

// A handler may take its connection, as a server of WebSockets does: then it has not answered in
// HTTP, and Close waits neither for it nor for its connection.
func TestHandlersThatHijack(t *testing.T) {
	taken := make(chan net.Conn, 1)
	w := start(t, Options{Handlers: map[string]http.Handler{"own.test": http.HandlerFunc(
		func(rw http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(rw).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			taken <- conn
		})}})
	resp, err := client(t, w).Get("http://own.test/")
	require.NoError(t, err)
	defer resp.Body.Close()
	conn := <-taken
	defer conn.Close()
	require.NoError(t, w.Close())
	require.Len(t, w.Log(), 1)
	require.Zero(t, w.Log()[0].Status)
}

// What a handler flushes is in the log when its client sees it, and hints come before the answer.
func TestHandlersThatFlush(t *testing.T) {
	w := start(t, Options{Handlers: map[string]http.Handler{"own.test": http.HandlerFunc(
		func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Link", "</x>; rel=preload")
			rw.WriteHeader(http.StatusEarlyHints)
			if r.URL.Path == "/" {
				rw.(http.Flusher).Flush()
			} else if err := http.NewResponseController(rw).Flush(); err != nil {
				panic(err)
			}
			<-r.Context().Done()
		})}})
	for i, url := range []string{"http://own.test/", "http://own.test/x"} {
		hints := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(int, textproto.MIMEHeader) error { hints++; return nil },
		})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		require.NoError(t, err)
		resp, err := client(t, w).Do(req)
		require.NoError(t, err)
		require.Equal(t, 200, w.Log()[i].Status, url)
		require.Equal(t, 1, hints)
		require.NoError(t, resp.Body.Close())
	}
}
