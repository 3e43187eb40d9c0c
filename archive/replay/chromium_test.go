package replay

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// browsers are the names under which Chromium is installed.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// browserTime is how long a browser may take. It starts slowly on a busy machine.
const browserTime = time.Minute

// chromium returns the command that starts a headless browser.
func chromium(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser is too slow for a short test")
	}
	path := ""
	for _, name := range browsers {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("Chromium is not installed (Debian: apt-get install chromium)")
	}
	profile, err := os.MkdirTemp("", "viewer")
	require.NoError(t, err)
	// The last of its processes may still write to the profile.
	t.Cleanup(func() {
		for range 50 {
			if os.RemoveAll(profile) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), browserTime)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, path, append([]string{"--headless", "--no-sandbox",
		"--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir=" + profile}, args...)...)
}

// browser is a Chromium controlled by the DevTools protocol over a pair of pipes.
type browser struct {
	t       *testing.T
	in      *os.File
	out     *bufio.Reader
	id      int
	session string
}

// drive starts a browser that shows a page.
func drive(t *testing.T, url string) *browser {
	t.Helper()
	cmd := chromium(t, "--remote-debugging-pipe", "--window-size=1000,800")
	theirIn, in, err := os.Pipe()
	require.NoError(t, err)
	out, theirOut, err := os.Pipe()
	require.NoError(t, err)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // as descriptors 3 and 4
	require.NoError(t, cmd.Start())
	require.NoError(t, theirIn.Close())
	require.NoError(t, theirOut.Close())
	b := &browser{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = in.Close() // ends the browser
		_ = cmd.Wait()
		_ = out.Close()
	})
	target := b.call("Target.createTarget", map[string]any{"url": url})
	attached := b.call("Target.attachToTarget", map[string]any{"targetId": target["targetId"],
		"flatten": true})
	b.session, _ = attached["sessionId"].(string)
	return b
}

// call sends a command and returns its result.
func (b *browser) call(method string, params map[string]any) map[string]any {
	b.t.Helper()
	b.id++
	message := map[string]any{"id": b.id, "method": method, "params": params}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	data, err := json.Marshal(message)
	require.NoError(b.t, err)
	_, err = b.in.Write(append(data, 0))
	require.NoError(b.t, err)
	for {
		data, err := b.out.ReadBytes(0)
		require.NoError(b.t, err, "the browser exited")
		var answer struct {
			ID     int
			Result map[string]any
			Error  map[string]any
		}
		require.NoError(b.t, json.Unmarshal(data[:len(data)-1], &answer))
		if answer.ID == b.id {
			require.Empty(b.t, answer.Error, method)
			return answer.Result
		}
	}
}

// evaluate returns the value of an expression in the page.
func (b *browser) evaluate(expression string) any {
	b.t.Helper()
	result := b.call("Runtime.evaluate", map[string]any{"expression": expression,
		"returnByValue": true, "awaitPromise": true})
	value, _ := result["result"].(map[string]any)
	return value["value"]
}

// click presses and releases a mouse button.
func (b *browser) click(button string, x, y int) {
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y,
			"button": button, "clickCount": 1})
	}
}

// recorder is a server that records the addresses of requests. Its methods are safe for concurrent
// use.
type recorder struct {
	*httptest.Server
	mu        sync.Mutex
	addresses []string
}

// record starts a server with a handler. Without one, all responses are empty.
func record(t *testing.T, h http.Handler) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.addresses = append(r.addresses, req.RequestURI)
		r.mu.Unlock()
		if h != nil {
			h.ServeHTTP(w, req)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.addresses)
}

// wait waits for a request whose address contains part.
func (r *recorder) wait(t *testing.T, part string) {
	t.Helper()
	require.Eventually(t, func() bool { return r.requested(part) }, browserTime,
		10*time.Millisecond, "no request for %s", part)
}

// requested reports whether the address of a request contains part.
func (r *recorder) requested(part string) bool {
	return slices.ContainsFunc(r.list(), func(s string) bool { return strings.Contains(s, part) })
}

// reported returns the outcomes that the probes of a page have reported, by name.
func (r *recorder) reported() map[string]string {
	found := map[string]string{}
	for _, address := range r.list() {
		if _, rest, ok := strings.Cut(address, "/reported/"); ok {
			name, outcome, _ := strings.Cut(rest, "/")
			found[name] = outcome
		}
	}
	return found
}

// outcomes waits until all probes have reported. Their images may be requested in any order.
func (r *recorder) outcomes(t *testing.T) map[string]string {
	t.Helper()
	// Two more are in a loop, and one reports the end.
	all := strings.Count(probes, `await attempt("`) + 3
	require.Eventually(t, func() bool { return len(r.reported()) >= all }, browserTime,
		10*time.Millisecond, "not all probes have reported")
	return r.reported()
}

// probes is a page whose script attempts forbidden accesses. It reports the outcomes in the
// addresses of images, which it may load from the archive. %s is the address of the live web.
const probes = `<!DOCTYPE html><title>Probes</title>
<link rel="stylesheet" href="probe.css">
<img src="probe.png" alt="">
<body><script>
const live = "%s";
function report(name, outcome) { new Image().src = "reported/" + name + "/" + outcome; }
async function attempt(name, action) {
	try { await action(); report(name, "escaped"); } catch (e) { report(name, "blocked"); }
}
function loads(make) {
	return new Promise((resolve, reject) => {
		const element = make();
		element.onload = resolve;
		element.onerror = reject;
		document.body.append(element);
	});
}
function insist(value) { if (!value) throw new Error("nothing"); }
const tag = (name, fields) => () => Object.assign(document.createElement(name), fields);
(async () => {
	await attempt("fetch", async () => (await fetch("/")).text());
	await attempt("fetch-blind", () => fetch("/", {mode: "no-cors"}));
	await attempt("fetch-versions", () => fetch(location.origin + "/versions?url=x"));
	await attempt("fetch-live", () => fetch(live + "fetch", {mode: "no-cors"}));
	await attempt("xhr", () => new Promise((resolve, reject) => {
		const x = new XMLHttpRequest(); x.open("GET", "/"); x.onload = resolve;
		x.onerror = reject; x.send();
	}));
	await attempt("parent", () =>
		insist(parent !== window ? parent.document.title : document.title));
	await attempt("parent-name", () => insist(parent.location.href));
	await attempt("top", () => insist(top.location.href));
	await attempt("top-go", () => { top.location.hash = "#moved"; });
	await attempt("frame-element", () => insist(window === top || window.frameElement));
	await attempt("cookie", () => { document.cookie = "a=b"; insist(document.cookie); });
	await attempt("local-storage", () => { localStorage.setItem("a", "b"); });
	await attempt("session-storage", () => { sessionStorage.setItem("a", "b"); });
	await attempt("database", () => new Promise((resolve, reject) => {
		const r = indexedDB.open("a"); r.onsuccess = resolve; r.onerror = reject;
	}));
	await attempt("service-worker", () => navigator.serviceWorker.register("worker.js"));
	await attempt("worker", () => loads(() => { const w = new Worker("worker.js");
		const e = document.createElement("i"); w.onmessage = () => e.onload();
		w.onerror = () => e.onerror(); return e; }));
	await attempt("popup", () => insist(window.open("/")));
	await attempt("image-live", () => loads(tag("img", {src: live + "image"})));
	await attempt("script-live", () => loads(tag("script", {src: live + "script"})));
	await attempt("style-live", () =>
		loads(tag("link", {rel: "stylesheet", href: live + "style"})));
	await attempt("script-own", () => loads(tag("script", {src: "/static/viewer.js"})));
	await attempt("image-own", () => loads(tag("img", {src: "/static/icon.svg"})));
	await attempt("beacon-live", () => new Promise((resolve, reject) => {
		document.addEventListener("securitypolicyviolation", reject, {once: true});
		navigator.sendBeacon(live + "beacon"); setTimeout(resolve, 300);
	}));
	await attempt("socket-live", () => new Promise((resolve, reject) => {
		const s = new EventSource(live + "events"); s.onopen = resolve; s.onerror = reject;
	}));
	for (const [name, url] of [["frame-live", live + "frame"], ["frame-own", "/"]]) {
		const f = document.createElement("iframe");
		f.src = url;
		document.body.append(f);
		await attempt(name, async () => {
			const title = () => f.contentDocument && f.contentDocument.title;
			for (let i = 0; i < 20 && !title(); i++) {
				await new Promise((resolve) => setTimeout(resolve, 100));
			}
			insist(title());
		});
	}
	await attempt("form-live", () => { const f = document.createElement("form");
		const sink = tag("iframe", {name: "sink"})();
		f.action = live + "form"; f.target = "sink"; document.body.append(sink, f); f.submit();
		throw new Error("the live web records whether it was sent"); });
	await attempt("same-site", async () => insist((await (await fetch("data.json")).json()).fine));
	await attempt("module", () => loads(tag("script", {type: "module", src: "module.js"})));
	await attempt("other-site", async () => insist(await (await fetch(location.pathname.replace(
		/http:.*/, "http://other.example/data.json"))).json()));
	report("all", "done");
	setTimeout(() => { location.href = live + "gone"; }, 200);
})();
</script></body>`

// probeSite returns the visits of a site with the probes.
func probeSite(live string) []visit {
	const root = "http://probe.example/"
	json := `{"fine": true}`
	return []visit{
		htmlAt(days(0), root, fmt.Sprintf(probes, live)),
		typed(days(0), root+"probe.css", "text/css", "body{background:url(back.png)}"),
		typed(days(0), root+"probe.png", "image/png", "x"),
		typed(days(0), root+"back.png", "image/png", "x"),
		typed(days(0), root+"worker.js", "text/javascript", "postMessage(1)"),
		typed(days(0), root+"module.js", "text/javascript", "export {}"),
		typed(days(0), root+"data.json", "application/json", json),
		typed(days(0), "http://other.example/data.json", "application/json", json),
	}
}

// With scripts, an archived page reaches its own site, but not the viewer, the live web or other
// archived sites.
func TestArchivedScriptsAreContained(t *testing.T) {
	live := record(t, nil)
	v := New(archiveOf(t, probeSite(live.URL+"/")...), Options{Scripts: true})
	viewer := record(t, v)
	b := drive(t, viewer.URL+at(viewPath, days(0), "http://probe.example/"))
	outcomes := viewer.outcomes(t)
	for name, outcome := range outcomes {
		switch name {
		case "all", "same-site", "module":
		default:
			require.Equal(t, "blocked", outcome, name)
		}
	}
	for _, name := range []string{"same-site", "module"} {
		require.Equal(t, "escaped", outcomes[name], "a page may read its own website as of then")
	}
	// The script then navigates its frame to the live web, which the page around it forbids.
	b.evaluate("new Promise((resolve) => setTimeout(resolve, 600))")
	require.Equal(t, "/view/20261102090000000000/http://probe.example/",
		b.evaluate("location.pathname + location.hash"))
	require.Empty(t, live.list(), "a request reached the live web")
	require.Nil(t, b.evaluate("navigator.serviceWorker.controller"))
	require.Equal(t, "", b.evaluate("document.cookie"))
	require.EqualValues(t, 0, b.evaluate("localStorage.length"))
}

// Without scripts nothing on the page runs, and its resources come from the archive.
func TestArchivedPagesWithoutScripts(t *testing.T) {
	live := record(t, nil)
	v := New(archiveOf(t, probeSite(live.URL+"/")...), Options{})
	viewer := record(t, v)
	b := drive(t, viewer.URL+at(viewPath, days(0), "http://probe.example/"))
	for _, name := range []string{"probe.png", "probe.css", "back.png"} {
		viewer.wait(t, v.replayOf(days(0), "http://probe.example/"+name))
	}
	b.evaluate("new Promise((resolve) => setTimeout(resolve, 500))")
	require.Empty(t, viewer.reported())
	require.Empty(t, live.list())
}

// The probes work: the same page on an ordinary website reaches everything.
func TestProbesEscapeFromOrdinaryPages(t *testing.T) {
	live := record(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/style" {
			w.Header().Set("Content-Type", "text/css")
		}
		if r.URL.Path == "/image" {
			w.Header().Set("Content-Type", "image/svg+xml")
			_, _ = w.Write([]byte(`<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>`))
		}
	}))
	page := fmt.Sprintf(probes, live.URL+"/")
	site := record(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, ".json"):
			_, _ = w.Write([]byte(`{"fine": true}`))
		case strings.HasSuffix(r.URL.Path, ".js"):
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte("if (self.postMessage) postMessage(1)"))
		case r.URL.Path == "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(strings.Replace(page, "<script>", "<script>if (window !== top) "+
				"throw new Error('framed');", 1)))
		}
	}))
	drive(t, site.URL+"/")
	outcomes := site.outcomes(t)
	for _, name := range []string{"fetch", "fetch-blind", "fetch-live", "xhr", "parent", "top",
		"top-go", "cookie", "local-storage", "session-storage", "database", "service-worker",
		"image-live", "script-live", "style-live", "frame-own", "worker"} {
		require.Equal(t, "escaped", outcomes[name], name)
	}
	live.wait(t, "/gone")
	require.Contains(t, live.list(), "/form?")
	require.Contains(t, live.list(), "/beacon")
}

// A click on a link in a page opens the view of its target, in the same or in a new window.
func TestLinksReplaceTheWholeWindow(t *testing.T) {
	const root = "http://a.example/"
	big := `<body><img src=ready.png><a href="/next(1)" style="position:fixed;inset:0">Next</a>`
	a := archiveOf(t, htmlAt(days(0), root, big), htmlAt(days(0), root+"next(1)", "<p>Here"),
		typed(days(0), root+"ready.png", "image/png", "x"))
	for _, button := range []string{"left", "middle"} {
		viewer := record(t, New(a, Options{}))
		b := drive(t, viewer.URL+at(viewPath, days(0), root))
		viewer.wait(t, "ready.png")
		// A click before the page is painted has no effect, and there is no event for that.
		next := at(viewPath, days(0), root+"next(1)")
		for start := time.Now(); !viewer.requested(next); time.Sleep(300 * time.Millisecond) {
			require.Less(t, time.Since(start), browserTime, "the click has no effect")
			b.click(button, 400, 500)
		}
		viewer.wait(t, "/"+formatMoment(days(0))+"/"+root+"next(1)")
		if button == "left" {
			require.Eventually(t, func() bool {
				return b.evaluate("location.pathname") == next
			}, browserTime, 20*time.Millisecond)
		}
	}
}

// The viewer's own pages work under their own policy, and can be used with the keyboard alone.
func TestOwnPagesInABrowser(t *testing.T) {
	viewer := record(t, siteHandler(t, Options{}))
	b := drive(t, viewer.URL+at(viewPath, days(2), millHome))
	viewer.wait(t, "logo.png")
	require.Equal(t, true, b.evaluate(`document.styleSheets.length === 1 &&
		getComputedStyle(document.body).display === "flex"`))
	b.evaluate(`document.dispatchEvent(new KeyboardEvent("keydown", {key: "/"}))`)
	require.Equal(t, "url", b.evaluate("document.activeElement.id"))
	b.evaluate(`document.activeElement.blur();
		document.dispatchEvent(new KeyboardEvent("keydown", {key: "[", altKey: true}))`)
	viewer.wait(t, at(viewPath, days(1), millHome))
	for _, address := range []string{"/", versionsAddress(millHome),
		browseAddress(millHome, days(9)),
		diffAddress(millHome, days(0), days(2))} {
		b.call("Page.navigate", map[string]any{"url": viewer.URL + address})
		require.Eventually(t, func() bool {
			return b.evaluate("location.pathname + location.search + document.readyState") ==
				address+"complete"
		}, browserTime, 10*time.Millisecond, address)
		// Each field has a label, and each page a language and one top-level heading.
		require.Equal(t, true, b.evaluate(`document.documentElement.lang === "en" &&
			document.querySelectorAll("h1").length === 1 &&
			[...document.querySelectorAll("input:not([type=hidden])")].every((e) =>
				e.labels.length > 0 || e.ariaLabel)`), address)
		for _, width := range []int{1280, 360} {
			b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width,
				"height": 800, "deviceScaleFactor": 1, "mobile": false})
			require.Equal(t, true, b.evaluate("document.documentElement.scrollWidth <= innerWidth"),
				"%s is wider than %d", address, width)
			require.Equal(t, true, b.evaluate("document.getElementById('time').offsetWidth > 100"),
				"the time can be entered on %s at %d", address, width)
		}
	}
}
