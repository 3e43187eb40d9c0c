package replay

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStyleSheets(t *testing.T) {
	const d = inReplay + "https://a.example/dir/"
	for _, tt := range []struct{ name, sheet, want string }{
		{"a URL without quotes", "a{background:url(x.png)}", `a{background:url("` + d + `x.png")}`},
		{"a URL in double quotes", `a{b:url("x.png")}`, `a{b:url("` + d + `x.png")}`},
		{"a URL in single quotes", `a{b:url('x.png')}`, `a{b:url("` + d + `x.png")}`},
		{"a URL with spaces around it", "a{b:url(\n x.png )}", `a{b:url("` + d + `x.png")}`},
		{"url in upper case", "a{b:URL(x.png)}", `a{b:url("` + d + `x.png")}`},
		{"url written with escapes", `a{b:\75 r\6c(x.png)}`, `a{b:url("` + d + `x.png")}`},
		{"url with an escape that is a letter", `a{b:u\rl(x.png)}`, `a{b:url("` + d + `x.png")}`},
		{"escapes within a URL", `a{b:url(\2f\2f b.example/x)}`,
			`a{b:url("` + inReplay + `https://b.example/x")}`},
		{"an escaped parenthesis within a URL", `a{b:url(x\).png)}`, `a{b:url("` + d + `x).png")}`},
		{"parentheses in quotes", `a{b:url("x(1).png")}`, `a{b:url("` + d + `x(1).png")}`},
		{"a URL that is not closed", `a{b:url(x.png`, `a{b:url("` + d + `x.png")`},
		{"a URL with a quote in it means nothing", `a{b:url(x"y)}`, `a{b:url("data:,")}`},
		{"and so does one with a space in it", `a{b:url(x y)}`, `a{b:url("data:,")}`},
		{"two URLs", "a{b:url(x),url(y)}", `a{b:url("` + d + `x"),url("` + d + `y")}`},
		{"a part of the page", "a{fill:url(#g)}", `a{fill:url("#g")}`},
		{"an image in the sheet", "a{b:url(data:image/gif;base64,AA==)}",
			`a{b:url("data:image/gif;base64,AA==")}`},
		{"a script", "a{b:url(javascript:x)}", `a{b:url("data:,")}`},
		{"a page in the sheet", "a{b:url(data:text/html,x)}", `a{b:url("data:,")}`},
		{"an import as a string", `@import "x.css";`, `@import "` + d + `x.css";`},
		{"an import as a URL", `@import url(x.css) screen;`, `@import url("` + d + `x.css") screen;`},
		{"an import as a URL in quotes", `@import url('x.css');`, `@import url("` + d + `x.css");`},
		{"an import in upper case with escapes and comments", `@IMP\6f rt/**/'x.css';`,
			`@IMPort/**/"` + d + `x.css";`},
		{"only the first string of an import is a URL", `@import "x.css" layer("y");`,
			`@import "` + d + `x.css" layer("y");`},
		{"an import of a sheet in the sheet", `@import "data:text/css,a{}";`, `@import "data:,";`},
		{"a namespace is a name", `@namespace s url(http://www.w3.org/2000/svg);`,
			`@namespace s url("http://www.w3.org/2000/svg");`},
		{"the encoding is UTF-8 now", `@charset "latin1";a{}`, `a{}`},
		{"a set of images", `a{b:image-set("x.png" 1x, url(y.png) 2x type("image/png"))}`,
			`a{b:image-set("` + d + `x.png" 1x, url("` + d + `y.png") 2x type("image/png"))}`},
		{"a set of images by its old name", `a{b:-webkit-image-set(url(x.png) 1x)}`,
			`a{b:-webkit-image-set(url("` + d + `x.png") 1x)}`},
		{"src is a function", `@font-face{src:src("x.woff")}`, `@font-face{src:src("` + d + `x.woff")}`},
		{"another function has strings", `a{b:counters(c,".")}`, `a{b:counters(c,".")}`},
		{"a string is not a URL", `a{content:"http://b.example/"}`, `a{content:"http://b.example/"}`},
		{"a URL in a string is none", `a{content:"url(x)"}`, `a{content:"url(x)"}`},
		{"a URL in a comment is none", `a{/*url(x)*/b:c}`, `a{/**/b:c}`},
		{"a comment that does not end takes all", `a{b:c}/* url(x)`, `a{b:c}`},
		{"a word that ends in url", `a{b:my-url(x)}`, `a{b:my-url(x)}`},
		{"a number with a unit that looks like it", `a{b:1url(x)}`, `a{b:1url(x)}`},
		{"a name that looks like it", `a{url:(x)}`, `a{url:(x)}`},
		{"negative numbers", `a{margin:-5px -.5em calc(1px - 2px)}`,
			`a{margin:-5px -.5em calc(1px - 2px)}`},
		{"variables and vendors", `a{--x:1;-moz-y:var(--x)}`, `a{--x:1;-moz-y:var(--x)}`},
		{"colours", `a{color:#0af;b:#abc123}`, `a{color:#0af;b:#abc123}`},
		{"conditions", `@media (min-width:3em) and (max-width:9e2px){a>b~c+d{e:f!important}}`,
			`@media (min-width:3em) and (max-width:9e2px){a>b~c+d{e:f!important}}`},
		{"attributes", `a[href^='http://']{b:c}`, `a[href^="http://"]{b:c}`},
		{"a class that begins with a digit", `.\31 x{b:c}`, `.\31 x{b:c}`},
		{"a class with a colon", `.md\:flex{b:c}`, `.md\3a flex{b:c}`},
		{"icons", `a::before{content:"\f101"}`, "a::before{content:\"\uf101\"}"},
		{"a quote in a string", `a{content:"\""}`, `a{content:"\""}`},
		{"a line break in a string", `a{content:"\a x"}`, `a{content:"\a x"}`},
		{"a string that goes on in the next line", "a{content:\"x\\\ny\"}", `a{content:"xy"}`},
		{"a string that was not closed", "a{content:\"x\n}b{c:url(y)}",
			"a{content:\"x\"\n}b{c:url(\"" + d + "y\")}"},
		{"the end of a style in a string", `a{content:"</style><b>"}`,
			`a{content:"\3c /style>\3c b>"}`},
		{"a comment of HTML around it", `<!-- a{b:c} -->`, ` a{b:c} -->`},
		{"a tag in a sheet", `a<b{}`, `a< b{}`},
		{"a tag by an escape", `\<b{}`, `\3c b{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := testLinker(home)
			got := rewriteCSS(tt.sheet, l)
			require.Equal(t, tt.want, got)
			require.NotContains(t, strings.ToLower(got), "</")
		})
	}
}

// What is plain already is not changed any more, but for its URLs, which are addresses now.
func TestPlainSheetsStayAsTheyAre(t *testing.T) {
	sheets := []string{
		`a { b: url("data:image/png,x"); c: "d\"e\\f"; }`,
		"@media print {\n\ta, .b > c:not(.d) { e: f(1px, -2.5em, 100%) !important }\n}",
		`@font-face { font-family: "X"; src: url("#a") format("woff2"), local("X Y"); }`,
		`.\31 0 { grid-template-areas: "a b" "c d"; }`,
		`@supports (display: grid) and (not (display: inline-grid)) { a { b: c } }`,
		"a::after { content: \"\u201c\" }",
	}
	for _, sheet := range sheets {
		require.Equal(t, sheet, rewriteCSS(sheet, testLinker(home)))
	}
}
