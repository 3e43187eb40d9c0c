package replay

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPages(t *testing.T) {
	const (
		d = inReplay + "https://a.example/dir/"
		v = inView + "https://a.example/dir/"
	)
	for _, tt := range []struct{ name, page, want string }{
		{"a link opens a view in the whole window", `<a href="x">y</a>`,
			`<a href="` + v + `x" target="_top">y</a>`},
		{"without quotes", `<a href=x>y</a>`, `<a href="` + v + `x" target="_top">y</a>`},
		{"in upper case", `<A HREF='x'>y</A>`, `<a href="` + v + `x" target="_top">y</a>`},
		{"with entities", `<a href="?a&amp;b&#x3d;c">y</a>`,
			`<a href="` + inView + home + `?a&amp;b=c" target="_top">y</a>`},
		{"with its own target", `<a target=other href=x>y</a>`,
			`<a href="` + v + `x" target="_top">y</a>`},
		{"to a fragment", `<a href="#x">y</a>`, `<a href="#x">y</a>`},
		{"to a script", `<a href="javascript:alert(1)">y</a>`, `<a>y</a>`},
		{"to a script with entities", `<a href="&#106;avascript&colon;alert(1)">y</a>`, `<a>y</a>`},
		{"with a ping and a download", `<a ping=//b download href=x>y</a>`,
			`<a href="` + v + `x" target="_top">y</a>`},
		{"the first of two attributes counts", `<a href=x href=y>z</a>`,
			`<a href="` + v + `x" target="_top">z</a>`},
		{"on a map", `<area href=x>`, `<area href="` + v + `x" target="_top">`},
		{"an image", `<img src=x.png alt="a &quot;b&quot;">`,
			`<img src="` + d + `x.png" alt="a &#34;b&#34;">`},
		{"an image without a scheme", `<img src=//b.example/x>`,
			`<img src="` + inReplay + `https://b.example/x">`},
		{"an image in several sizes", `<img srcset="a.png 1x, b.png 2x">`,
			`<img srcset="` + d + `a.png 1x, ` + d + `b.png 2x">`},
		{"a lazy image", `<img data-src=x.png src="data:image/gif,">`,
			`<img data-src="x.png" src="` + d + `x.png">`},
		{"a background", `<body background=x.png>`, `<body background="` + d + `x.png">`},
		{"a video", `<video src=x poster=y><source src=z><track src=w></video>`,
			`<video src="` + d + `x" poster="` + d + `y"><source src="` + d + `z">` +
				`<track src="` + d + `w"></video>`},
		{"a frame", `<iframe src=x sandbox="allow-same-origin" allow=camera>y</iframe>`,
			`<iframe src="` + d + `x"></iframe>`},
		{"a frame with a data URL", `<iframe src="data:text/html,x"></iframe>`,
			`<iframe></iframe>`},
		{"a set of frames", `<frameset><frame src=x></frameset>`,
			`<frameset><frame src="` + d + `x"></frameset>`},
		{"srcdoc", `<iframe srcdoc="<img src=x onerror=y><script>z</script>"></iframe>`,
			`<iframe srcdoc="&lt;img src=&#34;` + d + `x&#34;&gt;"></iframe>`},
		{"a base in srcdoc", `<iframe srcdoc="<base href=/1/><img src=x>"></iframe><img src=x>`,
			`<iframe srcdoc="&lt;img src=&#34;` + inReplay + `https://a.example/1/x&#34;&gt;"></iframe><img src="` + d + `x">`},
		{"an object", `<object data=x codebase=http://b.example/></object>`,
			`<object data="` + d + `x"></object>`},
		{"a plugin", `<embed src=x>`, `<embed src="` + d + `x">`},
		{"a style sheet", `<link rel=StyleSheet href=x.css integrity=y crossorigin>`,
			`<link rel="stylesheet" href="` + d + `x.css">`},
		{"an icon", `<link rel="shortcut icon" href=x.ico>`,
			`<link rel="shortcut icon" href="` + d + `x.ico">`},
		{"prefetch and other relations", `<link rel=dns-prefetch href=//b>` +
			`<link rel="preconnect" href=//b><link rel=preload as=style href=x>` +
			`<link rel=canonical href=x>`, ``},
		{"a style sheet with other relations", `<link rel="preconnect alternate Stylesheet preload prefetch" as=style href=x>`,
			`<link rel="alternate stylesheet" as="style" href="` + d + `x">`},
		{"a style", `<style>a{b:url(x)}</style>`, `<style>a{b:url("` + d + `x")}</style>`},
		{"a style attribute", `<p style="b:url('x')">y`,
			`<p style="b:url(&#34;` + d + `x&#34;)">y`},
		{"a style attribute with entities", `<p style="b:u&#114;l(x)">y`,
			`<p style="b:url(&#34;` + d + `x&#34;)">y`},
		{"a base", `<a href=x></a><base href="//b.example/c/d" target=x><a href=y></a>`,
			`<a href="` + inView + `https://b.example/c/x" target="_top"></a>` +
				`<a href="` + inView + `https://b.example/c/y" target="_top"></a>`},
		{"only the first base counts", `<base href=/1/><base href=/2/><img src=x>`,
			`<img src="` + inReplay + `https://a.example/1/x">`},
		{"empty references", `<img src=""><iframe src=" "></iframe><p style="b:url()">y<a href="">z</a>`,
			`<img><iframe></iframe><p style="b:url(&#34;data:,&#34;)">y` +
				`<a href="` + inView + home + `" target="_top">z</a>`},
		{"a base in a template", `<template><base href=/1/></template><img src=x>`,
			`<template></template><img src="` + d + `x">`},
		{"a base in SVG", `<svg><base href=/1/></svg><img src=x>`, `<svg></svg><img src="` + d + `x">`},
		{"a base after a template in SVG", `<svg><template/></svg><base href=/1/><img src=x>`,
			`<svg><template /></svg><img src="` + inReplay + `https://a.example/1/x">`},
		{"an invalid base", `<base href="javascript:x"><img src=x>`, `<img src="` + d + `x">`},
		{"with a base, a fragment is on another page", `<base href=/1/><a href="#x">y</a>`,
			`<a href="` + inView + `https://a.example/1/#x" target="_top">y</a>`},
		{"a refresh", `<meta http-equiv=Refresh content="1; URL=x">`,
			`<meta http-equiv="refresh" content="1;url=` + d + `x">`},
		{"a refresh to a script", `<meta http-equiv=refresh content="0;url=javascript:x">`, ``},
		{"a reload", `<meta http-equiv=refresh content="30">`, ``},
		{"policies of the page", `<meta http-equiv=content-security-policy content=x>` +
			`<meta http-equiv=set-cookie content=x><meta name=Referrer content=unsafe-url>`, ``},
		{"the encoding",
			`<meta charset=latin1><meta http-equiv=content-type content="text/html">`, ``},
		{"a description", `<meta name=description content="x">`,
			`<meta name="description" content="x">`},
		{"scripts", `a<script src=x>alert("<p>")</script>b<SCRIPT>c</SCRIPT>d`, `abd`},
		{"a script with a comment", `a<script><!-- <script> --></script>b`, `ab`},
		{"handlers", `<p onclick=x ONLOAD=y id=z>`, `<p id="z">`},
		{"noscript", `<noscript><img src=x></noscript>`,
			`<noscript><img src="` + d + `x"></noscript>`},
		{"comments", `a<!-- <img src=x> -->b<!--[if IE]><p><![endif]-->c`, `abc`},
		{"a form", `<form action=x method=post><input name=q><input type=submit formaction=y>` +
			`<button>z</button></form>`,
			`<form method="post"><input name="q"><input type="submit" disabled="">` +
				`<button disabled="">z</button></form>`},
		{"a doctype", `<!doctype html>`, `<!DOCTYPE html>`},
		{"an old doctype", `<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2//EN">`,
			`<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2//EN">`},
		{"text with entities", `a &lt;b> &amp;&nbsp;c < d`, "a &lt;b&gt; &amp;\u00a0c &lt; d"},
		{"a title with a tag", `<title>a <b> &lt;/title></title>`,
			`<title>a &lt;b&gt; &lt;/title&gt;</title>`},
		{"a textarea", `<textarea><img src=x></textarea>`,
			`<textarea>&lt;img src=x&gt;</textarea>`},
		{"xmp", `<xmp><a href=x></xmp>`, `<pre>&lt;a href=x&gt;</pre>`},
		{"plaintext", `<plaintext><a href=x></plaintext>`,
			`<pre>&lt;a href=x&gt;&lt;/plaintext&gt;`},
		{"noframes and noembed", `<noframes><a href=x></noframes><noembed><p></noembed>y`, `y`},
		{"an image in SVG", `<svg><image xlink:href=x /><use href="#y" /></svg>`,
			`<svg><image xlink:href="` + d + `x" /><use href="#y" /></svg>`},
		{"a link in SVG", `<svg><a xlink:href=x>y</a></svg>`,
			`<svg><a xlink:href="` + v + `x" target="_top">y</a></svg>`},
		{"an SVG animation of a link", `<svg><a><animate attributeName=href to=//b /></a></svg>`,
			`<svg><a><animate to="//b" /></a></svg>`},
		{"an SVG animation of a position", `<svg><animate attributeName=cx to=5 /></svg>`,
			`<svg><animate attributename="cx" to="5" /></svg>`},
		{"a color in SVG", `<svg><path fill="url(//b/#x)" stroke=red /></svg>`,
			`<svg><path fill="url(&#34;` + inReplay + `https://b/#x&#34;)" stroke="red" /></svg>`},
		{"tags in a style of SVG are omitted", `<svg><style>a<a href=x>{}</a></style><a href=x>`,
			`<svg><style>a{}</style><a href="` + v + `x" target="_top">`},
		{"the end of SVG ends its style", `<svg><style>a{}</svg>b`,
			`<svg><style>a{}</style></svg>b`},
		{"HTML ends a style of SVG", `<svg><style>a{}<p>b`, `<svg><style>a{}</style><p>b`},
		{"a style of SVG", `<svg><style>a{b:url(x)}</style></svg>`,
			`<svg><style>a{b:url("` + d + `x")}</style></svg>`},
		{"a style of SVG in CDATA", `<svg><style><![CDATA[a>b{c:url(x)}]]></style></svg>`,
			`<svg><style>a&gt;b{c:url("` + d + `x")}</style></svg>`},
		{"a comment divides no word of a style of SVG", `<svg><style>a{b:u<!---->rl(x)}</style>`,
			`<svg><style>a{b:url("` + d + `x")}</style>`},
		{"a tag divides no word of a style of SVG", `<svg><style>@im<g/>port <!---->'x';`,
			`<svg><style>@import "` + d + `x";`},
		{"CDATA divides no word of a style of SVG", `<svg><style>a{b:url<![CDATA[(x)}]]>`,
			`<svg><style>a{b:url("` + d + `x")}`},
		{"HTML ends SVG", `<svg><p><style>a>b{}</style>`, `<svg><p><style>a>b{}</style>`},
		{"a script in SVG", `<svg><script>x</script><script href=y /></svg>`, `<svg></svg>`},
		{"invalid names", `<a"b href=x>y</a"b><p a"b=c d=e>`, `y<p d="e">`},
		{"an unclosed tag", `x<img src="y`, `x`},
		{"NUL in text", "a\x00b", "ab"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, string(rewrittenHTML([]byte(tt.page), testLinker(home))))
		})
	}
}

func TestPagesWithScripts(t *testing.T) {
	const d = inReplay + "https://a.example/dir/"
	for _, tt := range []struct{ name, page, want string }{
		{"a script is kept", `<script src=x async>a<b</script>`,
			`<script src="` + d + `x" async="">a<b</script>`},
		{"speculation rules are dropped",
			`a<script type=SpeculationRules>{"prefetch":[]}</script>b`, `a</script>b`},
		{"a handler is kept", `<p onclick="a()">`, `<p onclick="a()">`},
		{"the text of a script with a source does not run", `<script src="">x()</script><script src="data:,y()">z()</script>`,
			`<script src="data:,">x()</script><script src="data:,y()">z()</script>`},
		{"a comment is kept", `<!--x-->`, `<!--x-->`},
		{"a script makes a style sheet", `<link rel=preload as=Style href=x onload="this.rel='stylesheet'"><link rel=preload as=image href=x>`,
			`<link rel="preload" as="Style" href="` + d + `x" onload="this.rel='stylesheet'">`},
		{"a link opens in the frame", `<a href=x target=_top>y</a>`, `<a href="` + d + `x">y</a>`},
		{"a script listens to a button", `<button onclick="a()">b</button><input type=submit>`,
			`<button onclick="a()">b</button><input type="submit">`},
		{"a lazy image is left to its script", `<img data-src=x>`, `<img data-src="x">`},
		{"a link to a script is dropped", `<a href="javascript:x()">y</a>`, `<a>y</a>`},
		{"checksums and nonces are dropped", `<script src=x integrity=y nonce=z></script>`,
			`<script src="` + d + `x"></script>`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := testLinker(home)
			l.scripts = true
			require.Equal(t, tt.want, string(rewrittenHTML([]byte(tt.page), l)))
		})
	}
}

// A long base does not turn a page with many references into one of any size.
func TestRewritingIsBounded(t *testing.T) {
	base := `<base href="/` + strings.Repeat("x", 1<<20) + `/">`
	page := rewrittenHTML([]byte(base+strings.Repeat(`<a href=y>`, 10_000)), testLinker(home))
	require.Less(t, len(page), 4<<20)
	require.Equal(t, 10_000, strings.Count(string(page), "<a"), "everything else is kept")
}

// Documents in attributes of documents are rewritten to a limited depth.
func TestNestingIsBounded(t *testing.T) {
	page := `<img src=x>`
	for range maxNesting + 2 {
		page = `<iframe srcdoc="` + inValue.Replace(page) + `"></iframe>`
	}
	got := string(rewrittenHTML([]byte(page), testLinker(home)))
	require.NotContains(t, got, "img")
	require.Contains(t, got, "srcdoc")
}
