package replay

import (
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pieces are fragments of broken markup: tags around raw text, tags that must not be nested, and
// URLs outside the archive in every position.
var pieces = []string{
	`<a href="//evil.example">`, `</a>`, `<img src=//evil.example>`, `<img title="`, `">`, `'`,
	`"`, `>`, `<style>`, `</style>`, `@import "//evil.example";`,
	`a{background:url(//evil.example)}`, `<p style="`, `<p title='`, `<svg>`, `</svg>`,
	`<math>`, `</math>`, `<mtext>`, `<mi>`, `<mglyph>`, `<malignmark>`,
	`<annotation-xml encoding="text/html">`, `<foreignObject>`, `<desc>`, `<title>`, `</title>`,
	`<textarea>`, `</textarea>`, `<noscript>`, `</noscript>`, `<xmp>`, `</xmp>`, `<plaintext>`,
	`<iframe>`, `</iframe>`, `<noembed>`, `<noframes>`, `</noframes>`, `<select>`, `</select>`,
	`<option>`, `<template>`, `</template>`, `<table>`, `<tr>`, `<td>`, `</table>`, `<caption>`,
	`<form>`, `</form>`, `<p>`, `</p>`, `<br>`, `</br>`, `<b>`, `<font color=x>`, `<script>`,
	`</script>`, `<!--`, `-->`, `--!>`, `<!>`, `<?x `, `<![CDATA[`, `]]>`, `</`, `<`, `/`,
	`<frameset>`, `<frame src=//evil>`, `<base href=//evil.example/>`,
	`<link rel=stylesheet href=//evil.example>`, `<head>`, `<body>`, `<html>`, `&lt;`, `&quot;`,
	"\x00", "\r", "é", `<image xlink:href=//evil.example />`, `<use href=//evil.example#x />`,
	`<a xlink:href=javascript:alert(1)>`, `<input type=image src=//e>`,
	`<meta http-equiv=refresh content="0;url=//evil.example">`,
	`srcdoc="<img src=//evil.example>"`, `onclick=alert(1)`, ` `, `x`,
	`<set attributeName=href to=//evil.example />`, `<object data=//evil>`,
	`</p title="//evil">`, `<li>`, `<nobr>`, `<h1>`, `<ruby><rt>`,
	`<button formaction=//evil.example>`, `\`, `*/`, `/*`, `url(`, `)`, `;`, `{`, `}`,
	`<video poster=//evil.example>`, `<dialog>`,
	`<img srcset="//evil.example 1x, //evil.example 2x">`, `<area href=//evil.example>`,
	`<embed src=//e>`,
}

// inspect is a JavaScript function that parses documents and searches them for URLs outside the
// archive. It returns one line for each finding.
const inspect = `(documents) => {
	const fine = (url) => /^(\/replay\/K\/S\/T\/|\/view\/T\/|#|data:|$)/.test(url);
	const urls = new Set(["href", "src", "xlink:href", "poster", "background", "data", "action",
		"formaction", "ping", "lowsrc", "dynsrc", "longdesc", "codebase", "manifest"]);
	const sheet = (text) => {
		const parsed = new CSSStyleSheet();
		parsed.replaceSync(text);
		const rules = [...parsed.cssRules].map((rule) => rule.cssText).join(" ");
		return [...rules.matchAll(/url\("((?:[^"\\]|\\.)*)"\)/g)].map((m) => m[1]).filter((u) =>
			!fine(u));
	};
	const walk = (root, found, text) => {
		for (const element of root.querySelectorAll("*")) {
			const name = element.localName;
			if (name === "script" || name === "base") {
				found.push("there is a " + name + ": " + text);
			}
			for (const attribute of element.attributes) {
				const key = attribute.name.toLowerCase();
				if (key.startsWith("on") || urls.has(key) && !fine(attribute.value)) {
					found.push(name + " " + key + "=" + attribute.value + ": " + text);
				}
				if (key === "style" && sheet("a{" + attribute.value + "}").length) {
					found.push("style=" + attribute.value + ": " + text);
				}
				if (key === "srcset" && attribute.value.split(", ").some((u) => !fine(u))) {
					found.push("srcset=" + attribute.value + ": " + text);
				}
				if (key === "srcdoc") {
					walk(new DOMParser().parseFromString(attribute.value, "text/html"), found,
						text);
				}
			}
			if (name === "style") {
				found.push(...sheet(element.textContent).map((u) => "style " + u + ": " + text));
			}
			if (name === "meta" && element.httpEquiv && !/url=\/replay/.test(element.content)) {
				found.push("meta: " + text);
			}
			if (element.content instanceof DocumentFragment) {
				walk(element.content, found, text);
			}
		}
	};
	const found = [];
	for (const text of documents) {
		walk(new DOMParser().parseFromString(text, "text/html"), found, text);
	}
	return found.slice(0, 5).join("\n");
}`

// A real browser finds no URL outside the archive in rewritten documents. Its parser differs from
// that of package html, so the markup must have the same meaning for both.
func TestBrowserFindsNoEscapes(t *testing.T) {
	const rounds, batch = 10, 500
	b := drive(t, "about:blank")
	function := b.call("Runtime.evaluate",
		map[string]any{"expression": "globalThis.inspect = " + inspect})
	require.NotContains(t, function, "exceptionDetails")
	look := func(documents []string) string {
		global := b.call("Runtime.evaluate", map[string]any{"expression": "globalThis"})["result"]
		result := b.call("Runtime.callFunctionOn", map[string]any{
			"functionDeclaration": "function(documents) { return inspect(documents); }",
			"objectId":            global.(map[string]any)["objectId"],
			"arguments":           []any{map[string]any{"value": documents}},
			"returnByValue":       true})
		require.NotContains(t, result, "exceptionDetails")
		return result["result"].(map[string]any)["value"].(string)
	}
	for _, escaping := range []string{
		`<a href="//evil.example">`,
		`<svg><style>a{background:url(//evil.example)}</style>`,
		`<template><p style="b:c;background:url(//evil.example)">`,
	} {
		require.Contains(t, look([]string{escaping}), "evil", "inspect finds escapes")
	}
	for round := range uint64(rounds) {
		random := rand.New(rand.NewPCG(round, 0))
		var documents, sources []string
		for range batch {
			var source strings.Builder
			for range 3 + random.IntN(22) {
				source.WriteString(pieces[random.IntN(len(pieces))])
			}
			sources = append(sources, source.String())
			document := rewrittenHTML([]byte(source.String()), testLinker(home))
			documents = append(documents, string(document))
		}
		require.Empty(t, look(documents), "round %d", round)
		for i, page := range documents {
			require.Empty(t, escapes([]byte(page)), "round %d: %q", round, sources[i])
		}
	}
}

// A policy cannot name an IPv6 address, but the page and its resources are shown.
func TestReplayOverIPv6(t *testing.T) {
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("there is no IPv6 loopback address: " + err.Error())
	}
	viewer := record(t, siteHandler(t, Options{}))
	server := httptest.NewUnstartedServer(viewer.Config.Handler)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	defer server.Close()
	drive(t, server.URL+at(viewPath, days(2), millHome))
	viewer.wait(t, "logo.png")
	viewer.wait(t, "style.css")
}

// The fragment in the address of a view is passed to the frame.
func TestFragmentsReachTheFrame(t *testing.T) {
	viewer := record(t, siteHandler(t, Options{}))
	b := drive(t, viewer.URL+at(viewPath, days(2), millHome)+"#part")
	viewer.wait(t, "logo.png")
	require.Eventually(t, func() bool {
		src, _ := b.evaluate(`document.querySelector("iframe")?.src`).(string)
		return strings.HasSuffix(src, "#part")
	}, browserTime, 10*time.Millisecond)
}
