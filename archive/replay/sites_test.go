package replay

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// curious is a page whose script reads another archived site in every way that a browser has. It
// reports the outcomes in the addresses of images.
const curious = `<!DOCTYPE html><body><img id="bank" src="http://bank.example/named"><script>
function report(name, outcome) { new Image().src = "reported/" + name + "/" + outcome; }
function insist(value) { if (!value) throw new Error("nothing"); }
const bank = (path) => document.getElementById("bank").src.replace("named", path);
const loaded = (element) => new Promise((resolve, reject) => {
	element.onload = () => resolve(element);
	element.onerror = reject;
	document.body.append(element);
});
const make = (tag, fields) => Object.assign(document.createElement(tag), fields);
async function pixels(src) {
	const image = await loaded(make("img", {crossOrigin: "anonymous", src}));
	const canvas = make("canvas", {width: 1, height: 1}).getContext("2d");
	canvas.drawImage(image, 0, 0, 1, 1);
	canvas.getImageData(0, 0, 1, 1);
}
const read = async (address) => insist((await (await fetch(address)).text()).includes("secret"));
const attempts = {
	"hop": () => read("hop"),
	"direct": () => read(bank("page")),
	"sheet": async () => insist((await loaded(make("link", {rel: "stylesheet",
		crossOrigin: "anonymous", href: bank("sheet.css")}))).sheet.cssRules),
	"sheet-module": () => import(bank("sheet.css"), {with: {type: "css"}}),
	"data-module": () => import(bank("data.json"), {with: {type: "json"}}),
	"pixels": () => pixels(bank("image.svg")),
	"hop-pixels": () => pixels("hop-image"),
	"frame": async () => insist((await loaded(make("iframe", {src: bank("page")})))
		.contentDocument.body.textContent),
	"frame-address": async () => insist((await loaded(make("iframe", {src: bank("page")})))
		.contentWindow.location.href),
	"frame-timing": async () => {
		await loaded(make("iframe", {src: bank("page")}));
		const token = location.pathname.split("/")[2];
		insist(performance.getEntriesByType("resource").some((e) =>
			e.name.includes("bank.example") && !e.name.includes(token)));
	},
	"own": () => read("own"),
	"own-pixels": () => pixels("own.svg"),
	"cross-site-script": () => loaded(make("script", {src: bank("script.js")})),
	"cross-site-module": () => import(bank("module.js")),
	"private-module": () => import(bank("private.js")),
	"error": () => new Promise((resolve, reject) => {
		onerror = (message) => message.includes("secret") ? resolve() : reject();
		loaded(make("script", {crossOrigin: "anonymous", src: bank("error.js")})).catch(reject);
	}),
	"unnamed": () => loaded(make("script", {src: location.pathname.replace(/http:.*/,
		"http://bank.example/script.js")})),
	"hop-shown": () => loaded(make("img", {src: "hop-image"})),
	"same-site-hop": () => read("hop-own"),
};
(async () => {
	for (const [name, attempt] of Object.entries(attempts)) {
		try { await attempt(); report(name, "done"); } catch (e) { report(name, "blocked"); }
	}
})();
</script></body>`

// curiousSites are the site with the page, and the one that it is curious about.
func curiousSites() []visit {
	const page, bank = "http://curious.example/", "http://bank.example/"
	svg := `<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>`
	to := func(url, location string) visit {
		return visit{url, days(0), 302, "Location: " + location, ""}
	}
	return []visit{
		htmlAt(days(0), page, curious), typed(days(0), page+"own", "text/plain", "secret"),
		typed(days(0), page+"own.svg", "image/svg+xml", svg), to(page+"hop", bank+"page"),
		to(page+"hop-image", bank+"image.svg"), to(page+"hop-own", page+"own"),
		htmlAt(days(0), bank+"page", "<p>secret"),
		typed(days(0), bank+"sheet.css", "text/css", ".secret{}"),
		typed(days(0), bank+"data.json", "application/json", `"secret"`),
		typed(days(0), bank+"image.svg", "image/svg+xml", svg),
		typed(days(0), bank+"script.js", "text/javascript", ""),
		typed(days(0), bank+"module.js", "text/javascript\nAccess-Control-Allow-Origin: *",
			"export {}"),
		typed(days(0), bank+"private.js", "text/javascript", "export {}"),
		typed(days(0), bank+"error.js", "text/javascript", "secret"),
	}
}

// A page with scripts reads its own site and no other one, but may show what it embeds.
func TestScriptsReadOnlyTheirOwnSite(t *testing.T) {
	v := New(archiveOf(t, curiousSites()...), Options{Scripts: true})
	viewer := record(t, v)
	drive(t, viewer.URL+at(viewPath, days(0), "http://curious.example/"))
	const all = 19
	require.Eventually(t, func() bool { return len(viewer.reported()) == all }, browserTime,
		10*time.Millisecond, "not all attempts have reported")
	for name, outcome := range viewer.reported() {
		want := "blocked"
		switch name {
		case "own", "own-pixels", "cross-site-script", "cross-site-module", "hop-shown",
			"same-site-hop":
			want = "done"
		}
		require.Equal(t, want, outcome, name)
	}
}

// A website that has learned an address cannot read what is there: not at all without scripts, and
// with scripts nothing of another site or time.
func TestALearnedAddressOpensOneSite(t *testing.T) {
	sandboxed := []string{"Origin", "null", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors",
		"Sec-Fetch-Dest", "empty"}
	for _, scripts := range []bool{false, true} {
		v := New(archiveOf(t, curiousSites()...), Options{Scripts: scripts})
		page := v.replayOf(days(0), "http://curious.example/own")
		allowed := ask(t, v, page, sandboxed...).Header().Get("Access-Control-Allow-Origin")
		require.Equal(t, scripts, allowed == "null")

		other := strings.Replace(page, "curious.example/own", "bank.example/page", 1)
		answer := ask(t, v, other, sandboxed...)
		require.Equal(t, http.StatusNotFound, answer.Code, "another site")
		later := strings.Replace(page, formatMoment(days(0)), formatMoment(days(1)), 1)
		require.Equal(t, http.StatusNotFound, ask(t, v, later, sandboxed...).Code)
		require.Equal(t, http.StatusNotFound, ask(t, v, strings.Replace(page, "curious.example/own",
			"curious.example/hop", 1), sandboxed...).Code, "a redirect to another site")

		other = v.replayAddress(ownerIn(page), placeOf(t, days(0), "http://bank.example/page"))
		require.Empty(t, ask(t, v, other, sandboxed...).Header().
			Get("Access-Control-Allow-Origin"))
		framed := ask(t, v, other, "Sec-Fetch-Dest", "iframe", "Sec-Fetch-Mode", "navigate")
		require.Equal(t, http.StatusFound, framed.Code, "a frame gets the address of its own site")
		require.Equal(t, v.replayOf(days(0), "http://bank.example/page"),
			framed.Header().Get("Location"))
	}
}

// Fonts are always requested with CORS, and cannot be read.
func TestFontsOfOtherSites(t *testing.T) {
	const font = "http://fonts.example/a.woff2"
	v := New(archiveOf(t, append(curiousSites(), typed(days(0), font, "font/woff2", "x"))...),
		Options{})
	address := v.replayAddress(ownerIn(v.replayOf(days(0), "http://curious.example/x")),
		placeOf(t, days(0), font))
	for _, dest := range []string{"font", ""} { // over plain HTTP browsers do not say
		h := ask(t, v, address, "Sec-Fetch-Dest", dest).Header()
		require.Equal(t, "null", h.Get("Access-Control-Allow-Origin"), dest)
	}
	require.Empty(t, ask(t, v, address, "Sec-Fetch-Dest", "empty").Header().
		Get("Access-Control-Allow-Origin"))
}
