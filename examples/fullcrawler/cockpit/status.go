package cockpit

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/replay"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

//go:embed web
var webFiles embed.FS

// StatusHandler serves the live page at an address.
func (c *Crawl) StatusHandler(addr string) http.Handler {
	files, _ := fs.Sub(webFiles, "web") // embedded, so it exists
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, c.status())
	})
	mux.HandleFunc("GET /api/explain", func(w http.ResponseWriter, r *http.Request) {
		answerJSON(w, c.explain(r.FormValue("q")))
	})
	mux.HandleFunc("POST /api/pause", c.changing(func(host string) { c.Paused.Add(host) }))
	mux.HandleFunc("POST /api/resume", c.changing(c.Paused.Remove))
	mux.HandleFunc("POST /api/visit", func(w http.ResponseWriter, r *http.Request) {
		answerJSON(w, c.visit(r.FormValue("q")))
	})
	mux.HandleFunc("GET /metrics", c.metrics)
	if c.Cfg.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	}
	g := guard{names: append(ownNames(addr), c.Cfg.ListenNames...), token: c.liveToken}
	page := g.around(mux)
	if c.Store == nil {
		return page
	}
	pages := replay.New(c.Store, replay.Options{ // refuses foreign requests itself
		Base: archivePath, Title: "The archive of this crawl", Hosts: g.names})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasPrefix(r.URL.Path, archivePath):
			page.ServeHTTP(w, r)
		case !g.permits(r):
			http.Error(w, "open the live page first", http.StatusUnauthorized)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}

// ownNames returns the hosts in the addresses of a server: of one that listens at all addresses, those of
// this machine.
func ownNames(listen string) []string {
	own, _, _ := net.SplitHostPort(listen)
	own = cmp.Or(own, "::")
	names := []string{own}
	if addr, err := netip.ParseAddr(own); err == nil && addr.IsUnspecified() {
		addrs, _ := net.InterfaceAddrs() // without them, -listen-names has to have them
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				names = append(names, prefix.Addr().String())
			}
		}
	}
	return names
}

// changing returns a handler that changes whether a host is paused, in this crawl and when it resumes.
func (c *Crawl) changing(change func(host string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		host, err := stage.HostName(r.FormValue("host"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.pausing.Lock()
		defer c.pausing.Unlock()
		change(host)
		if err := c.savePauses(); err != nil {
			http.Error(w, "until the crawl ends: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// archivePath is where the live page shows the archive.
const archivePath = "/archive/"

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// A Status is all that the live page shows.
type Status struct {
	State      string         `json:"state"`
	Trouble    string         `json:"trouble"` // of this machine; "" if there is none
	Browse     string         `json:"browse"`  // where the archive is shown; "" if nowhere
	Rate       float64        `json:"rate"`    // of the last ten seconds
	Rates      [][2]float64   `json:"rates"`   // of each second: new or changed, and unchanged
	Pages      int64          `json:"pages"`
	Unchanged  int64          `json:"unchanged"`
	Bytes      int64          `json:"bytes"`
	Latency    float64        `json:"latency"` // seconds to the first byte, a recent mean
	Hosts      int            `json:"hosts"`
	Addresses  int            `json:"addresses"`
	Archive    archive.Stats  `json:"archive"`
	Memory     uint64         `json:"memory"`
	Goroutines int            `json:"goroutines"`
	Flow       []flowStep     `json:"flow"`
	Fates      []fateCount    `json:"fates"`
	Limits     []Fact         `json:"limits"`
	HostTable  []hostRow      `json:"hostTable"`
	Top        []stage.Ranked `json:"top"`
	Failures   []failure      `json:"failures"`
}

// A fateCount is how many visits had a fate.
type fateCount struct {
	Fate  stage.Fate `json:"fate"` // a code
	Says  string     `json:"says"` // the same in words
	Count int64      `json:"count"`
}

// fateCounts returns them with the largest first.
func fateCounts(fates map[stage.Fate]int64) []fateCount {
	counts := []fateCount{}
	for _, fate := range byCount(fates) {
		if fate != stage.LeftOver {
			counts = append(counts, fateCount{fate, fate.String(), fates[fate]})
		}
	}
	return counts
}

type flowStep struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

type hostRow struct {
	Host     string  `json:"host"`
	Queued   int     `json:"queued"`
	Pages    int     `json:"pages"`
	Load     float64 `json:"load"`
	Failures int     `json:"failures"`
	Why      string  `json:"why"`
	Paused   bool    `json:"paused"`
}

// mostHosts is how many hosts the live page shows, and mostTop how many pages.
const mostHosts, mostTop = 200, 20

func (c *Crawl) status() Status {
	s, queue := c.Tally.Sum(), c.Polite.Queue.Stats()
	store := c.Pages.Stats()
	rates := c.Tally.rates()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	st := Status{
		State: fmt.Sprintf("crawling for %s; the clock of the pages shows %s",
			s.took.Round(time.Second), moment(c.Clock.Now())),
		Rates: rates, Rate: latest(rates, 10), Pages: s.Pages, Unchanged: s.Fates[stage.Unchanged],
		Bytes: s.Bytes, Latency: c.Tally.firstByte(), Hosts: c.Hosts.Count(), Addresses: s.addrs,
		Archive: c.kept(), Memory: memory.Sys - memory.HeapReleased,
		Goroutines: runtime.NumGoroutine(), Fates: fateCounts(s.Fates), Failures: c.Tally.recent(),
		Flow: []flowStep{
			{"links to look up", int64(c.Pages.Discovered())},
			{"pages known", store.Records},
			{"due", store.Due},
			{"visits in progress", int64(len(c.Room))},
			{"in the scheduler", int64(queue.Queued)},
			{"hosts waiting for a delay", int64(queue.Waiting)},
			{"requests in flight", int64(queue.Out)},
		},
		HostTable: c.hostTable(),
		Limits:    c.limits(s),
	}
	st.Trouble, _ = c.Uplink.State()
	if c.Store != nil {
		st.Browse = archivePath
	}
	if store.Lag > 0 {
		st.Flow = append(st.Flow, flowStep{"seconds behind", int64(store.Lag.Seconds() / c.Clock.Pace)})
	}
	if c.Order != nil {
		st.Top = c.Order.Top(mostTop)
	}
	return st
}

// latest returns the mean of the last n seconds.
func latest(rates [][2]float64, n int) (mean float64) {
	rates = rates[max(0, len(rates)-n):]
	for _, r := range rates {
		mean += (r[0] + r[1]) / float64(len(rates))
	}
	return mean
}

// hostTable returns the hosts that are paused, which can be resumed there only, and those with the most in the queue.
func (c *Crawl) hostTable() []hostRow {
	rows := []hostRow{}
	more := func(a, b hostRow) int { return cmp.Or(b.Queued-a.Queued, cmp.Compare(a.Host, b.Host)) }
	for host, reason := range c.Polite.Queue.Reasons() {
		if reason.Queued == 0 && reason.Leased == 0 && reason.Failures == 0 || c.Paused.Has(host) {
			continue
		}
		rows = append(rows, hostRow{
			Host: host, Queued: reason.Queued, Failures: reason.Failures, Why: reason.String(),
		})
		if len(rows) == 10*mostHosts {
			slices.SortFunc(rows, more)
			rows = rows[:mostHosts]
		}
	}
	slices.SortFunc(rows, more)
	paused := []hostRow{}
	for host := range c.Paused.All() {
		reason := c.Polite.Queue.Explain(host)
		paused = append(paused, hostRow{Host: host, Queued: reason.Queued, Failures: reason.Failures, Why: reason.String()})
	}
	rows = append(paused, rows[:min(len(rows), mostHosts)]...)
	for i := range rows {
		rows[i].Pages, rows[i].Load = c.Hosts.Of(rows[i].Host)
		rows[i].Paused = c.Paused.Has(rows[i].Host)
	}
	return rows
}

// explain returns what is known about a host or a URL.
func (c *Crawl) explain(q string) []Fact {
	url, err := urlfilter.Seed(q)
	if err != nil {
		return []Fact{{"error", err.Error()}}
	}
	url = eitherScheme(c.Pages, q, url)
	host := weburl.Host(url)
	pages, load := c.Hosts.Of(host)
	facts := []Fact{
		{"host", host},
		{"now", host + " " + c.Polite.Queue.Explain(host).String()},
		{"pages", fmt.Sprintf("%d, which need %.1f visits a day", pages, load)},
	}
	if c.Paused.Has(host) {
		facts = append(facts, Fact{"paused", "by the operator"})
	}
	if addr, known := c.Resolver.Cached(host); known {
		text := addr.String()
		if c.Polite.Shared.Has(addr) {
			text += ", which unrelated hosts share: it has no delay of its own"
		}
		facts = append(facts, Fact{"address", text})
	} else if began, searching := c.Finder.Since(host); searching {
		facts = append(facts, Fact{"address", "lookup unanswered since " + moment(began)})
	}
	if why := c.Filter.Check(stage.Item{URL: url}); why != "" {
		facts = append(facts, Fact{"filters", string(why)})
	}
	facts = append(facts, Fact{"robots.txt", c.Robots.Explain(url, time.Now())})
	facts = append(facts, aboutPage(c.Cfg.Out, c.Pages, c.Clock, url)...)
	if c.Store == nil {
		return facts
	}
	return append(facts, aboutVersions(c.Store, url)...)
}

// visit visits a page as soon as its host allows it.
func (c *Crawl) visit(q string) []Fact {
	url, err := urlfilter.Seed(q)
	if err != nil {
		return []Fact{{"error", err.Error()}}
	}
	url = eitherScheme(c.Pages, q, url)
	says := c.VisitNow(url)
	c.Log.Info("visit now", "url", url, "says", says)
	return []Fact{{"page", url}, {"visit", says}}
}

// kept returns what the archive received in this run.
func (c *Crawl) kept() archive.Stats {
	if c.Store == nil {
		return archive.Stats{}
	}
	return c.Store.Stats()
}

// metrics responds in the text format of Prometheus.
func (c *Crawl) metrics(w http.ResponseWriter, _ *http.Request) {
	s, queue := c.Tally.Sum(), c.Polite.Queue.Stats()
	store := c.Pages.Stats()
	kept := c.kept()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	metric := func(kind, name, help string, value float64) {
		fmt.Fprintf(w, "# HELP spinneret_%s %s\n# TYPE spinneret_%[1]s %[3]s\nspinneret_%[1]s %[4]g\n",
			name, help, kind, value)
	}
	fmt.Fprint(w, "# HELP spinneret_visits_total Visits by fate.\n"+
		"# TYPE spinneret_visits_total counter\n")
	for _, fate := range slices.Sorted(maps.Keys(s.Fates)) {
		if fate != stage.LeftOver {
			fmt.Fprintf(w, "spinneret_visits_total{fate=%q} %d\n", string(fate), s.Fates[fate])
		}
	}
	metric("counter", "body_bytes_total", "Bytes of bodies, as sent.", float64(s.Bytes))
	metric("counter", "links_total", "Links that passed the filters.", float64(s.links))
	metric("counter", "archive_captures_total", "Captures archived in this run.", float64(kept.Captures))
	metric("counter", "archive_bytes_total", "Bytes written to the archive in this run.", float64(kept.Bytes))
	metric("counter", "store_read_bytes_total", "Bytes that the store of pages read.", float64(store.BytesRead))
	metric("counter", "store_written_bytes_total", "Bytes that the store of pages wrote.", float64(store.BytesWritten))
	metric("gauge", "pages_known", "Pages that are known.", float64(store.Records))
	metric("gauge", "pages_due", "Pages that are due.", float64(store.Due))
	metric("gauge", "pages_in_progress", "Pages taken from the store, without a fate yet.", float64(len(c.Room)))
	metric("gauge", "links_waiting", "Links that the next commit looks up.", float64(c.Pages.Discovered()))
	metric("gauge", "hosts_known", "Hosts with a page.", float64(c.Hosts.Count()))
	metric("gauge", "hosts_waiting", "Hosts waiting for a delay.", float64(queue.Waiting))
	metric("gauge", "requests_in_flight", "Visits in flight, including name lookups.", float64(queue.Out))
	metric("gauge", "names_looked_up", "Hosts being looked up, or waiting for a lookup.", float64(c.Finder.Len()))
	metric("gauge", "first_byte_seconds", "Recent mean time to the first byte.", c.Tally.firstByte())
	metric("gauge", "lag_seconds", "How far the crawl is behind schedule.", store.Lag.Seconds()/c.Clock.Pace)
	offline := 0.0
	if trouble, _ := c.Uplink.State(); trouble != "" {
		offline = 1
	}
	metric("gauge", "offline", "1 while this machine seems to be offline.", offline)
	metric("gauge", "goroutines", "Goroutines.", float64(runtime.NumGoroutine()))
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	metric("gauge", "memory_bytes", "Memory taken from the system.", float64(memory.Sys-memory.HeapReleased))
	metric("gauge", "heap_bytes", "Memory in use.", float64(memory.HeapAlloc))
	if free, known := FreeSpace(c.Cfg.Out); known {
		metric("gauge", "disk_free_bytes", "Room left on the disk of the crawl.", float64(free))
	}
	metric("gauge", "disk_reserve_bytes", "The room that -min-free keeps free.", float64(c.Cfg.MinFree))
	metric("gauge", "memory_limit_bytes", "The budget of -memory; 0 is none.", float64(c.Cfg.Memory))
	fmt.Fprintf(w, "# HELP spinneret_build_info The program.\n# TYPE spinneret_build_info gauge\n"+
		"spinneret_build_info{version=%q,go=%q} 1\n", buildVersion(), runtime.Version())
}
