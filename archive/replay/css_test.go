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
		{"escapes in a URL", `a{b:url(\2f\2f b.example/x)}`,
			`a{b:url("` + inReplay + `https://b.example/x")}`},
		{"an escaped parenthesis in a URL", `a{b:url(x\).png)}`, `a{b:url("` + d + `x).png")}`},
		{"parentheses in quotes", `a{b:url("x(1).png")}`, `a{b:url("` + d + `x(1).png")}`},
		{"an unclosed URL", `a{b:url(x.png`, `a{b:url("` + d + `x.png")`},
		{"a URL with a quote is invalid", `a{b:url(x"y)}`, `a{b:url("data:,")!}`},
		{"a URL with a space is invalid", `a{b:url(x y)}`, `a{b:url("data:,")!}`},
		{"two URLs", "a{b:url(x),url(y)}", `a{b:url("` + d + `x"),url("` + d + `y")}`},
		{"a fragment", "a{fill:url(#g)}", `a{fill:url("#g")}`},
		{"a data URL of an image", "a{b:url(data:image/gif;base64,AA==)}",
			`a{b:url("data:image/gif;base64,AA==")}`},
		{"a script", "a{b:url(javascript:x)}", `a{b:url("data:,")}`},
		{"a data URL of a page", "a{b:url(data:text/html,x)}", `a{b:url("data:,")}`},
		{"an import as a string", `@import "x.css";`, `@import "` + d + `x.css";`},
		{"an import as a URL", `@import url(x.css) screen;`,
			`@import url("` + d + `x.css") screen;`},
		{"an import as a URL in quotes", `@import url('x.css');`, `@import url("` + d + `x.css");`},
		{"an import in upper case with escapes and comments", `@IMP\6f rt/**/'x.css';`,
			`@IMPort/**/"` + d + `x.css";`},
		{"only the first string of an import is a URL", `@import "x.css" layer("y");`,
			`@import "` + d + `x.css" layer("y");`},
		{"an import of a data URL", `@import "data:text/css,a{}";`, `@import "data:,";`},
		{"a namespace is not loaded", `@namespace s url(http://www.w3.org/2000/svg);`,
			`@namespace s url("http://www.w3.org/2000/svg");`},
		{"@charset is dropped", `@charset "latin1";a{}`, `/**/a{}`},
		{"@charset separates words", `a{b:u@charset;rl(//c/d)}`, `a{b:u/**/rl(//c/d)}`},
		{"image-set", `a{b:image-set("x.png" 1x, url(y.png) 2x type("image/png"))}`,
			`a{b:image-set("` + d + `x.png" 1x, url("` + d + `y.png") 2x type("image/png"))}`},
		{"-webkit-image-set", `a{b:-webkit-image-set(url(x.png) 1x)}`,
			`a{b:-webkit-image-set(url("` + d + `x.png") 1x)}`},
		{"src is a function", `@font-face{src:src("x.woff")}`,
			`@font-face{src:src("` + d + `x.woff")}`},
		{"a string in another function", `a{b:counters(c,".")}`, `a{b:counters(c,".")}`},
		{"a string is not a URL", `a{content:"http://b.example/"}`,
			`a{content:"http://b.example/"}`},
		{"url in a string", `a{content:"url(x)"}`, `a{content:"url(x)"}`},
		{"url in a comment", `a{/*url(x)*/b:c}`, `a{/**/b:c}`},
		{"an unclosed comment", `a{b:c}/* url(x)`, `a{b:c}`},
		{"a word that ends in url", `a{b:my-url(x)}`, `a{b:my-url(x)}`},
		{"url as a unit", `a{b:1url(x)}`, `a{b:1url(x)}`},
		{"url as a property", `a{url:(x)}`, `a{url:(x)}`},
		{"negative numbers", `a{margin:-5px -.5em calc(1px - 2px)}`,
			`a{margin:-5px -.5em calc(1px - 2px)}`},
		{"variables and vendor prefixes", `a{--x:1;-moz-y:var(--x)}`, `a{--x:1;-moz-y:var(--x)}`},
		{"colors", `a{color:#0af;b:#abc123}`, `a{color:#0af;b:#abc123}`},
		{"media queries", `@media (min-width:3em) and (max-width:9e2px){a>b~c+d{e:f!important}}`,
			`@media (min-width:3em) and (max-width:9e2px){a>b~c+d{e:f!important}}`},
		{"attribute selectors", `a[href^='http://']{b:c}`, `a[href^="http://"]{b:c}`},
		{"a class that begins with a digit", `.\31 x{b:c}`, `.\31 x{b:c}`},
		{"a class with a colon", `.md\:flex{b:c}`, `.md\3a flex{b:c}`},
		{"icons", `a::before{content:"\f101"}`, "a::before{content:\"\uf101\"}"},
		{"a quote in a string", `a{content:"\""}`, `a{content:"\""}`},
		{"a line break in a string", `a{content:"\a x"}`, `a{content:"\a x"}`},
		{"a string on two lines", "a{content:\"x\\\ny\"}", `a{content:"xy"}`},
		{"an unclosed string", "a{content:\"x\n}b{c:url(y)}",
			"a{content:\"x\"\n}b{c:url(\"" + d + "y\")}"},
		{"an end tag in a string", `a{content:"</style><b>"}`,
			`a{content:"\3c /style>\3c b>"}`},
		{"an HTML comment around a sheet", `<!-- a{b:c} -->`, `/**/ a{b:c} -->`},
		{"the start of an HTML comment separates words", `@im<!--port "x";a{b:u<!--rl(//c/d)}`,
			`@im/**/port "x";a{b:u/**/rl(//c/d)}`},
		{"a tag in a sheet", `a<b{}`, `a<\62 {}`},
		{"an end tag in a sheet", `a</b>{}`, `a< /b>{}`},
		{"a function after a less-than sign", `a<url(x)`, `a< url("` + d + `x")`},
		{"a type", `a{b:attr(c type(<length>),0px)}`, `a{b:attr(c type(<\6c ength>),0px)}`},
		{"an escaped tag", `\<b{}`, `\3c b{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := testLinker(home)
			got := rewrittenCSS(tt.sheet, l)
			require.Equal(t, tt.want, got)
			require.NotContains(t, strings.ToLower(got), "</")
		})
	}
}

// A sheet that is already in the plain form does not change.
func TestPlainSheetsDoNotChange(t *testing.T) {
	sheets := []string{
		`a { b: url("data:image/png,x"); c: "d\"e\\f"; }`,
		"@media print {\n\ta, .b > c:not(.d) { e: f(1px, -2.5em, 100%) !important }\n}",
		`@font-face { font-family: "X"; src: url("#a") format("woff2"), local("X Y"); }`,
		`.\31 0 { grid-template-areas: "a b" "c d"; }`,
		`@supports (display: grid) and (not (display: inline-grid)) { a { b: c } }`,
		"a::after { content: \"\u201c\" }",
		"@media (1px<=width) and (width<=9px) and (width < 5em) { a{b:c} }@container (width <= calc(1px)) { a{b:c} }",
		"@media (width<(1px)) and (height<\n2px) { }",
	}
	for _, sheet := range sheets {
		require.Equal(t, sheet, rewrittenCSS(sheet, testLinker(home)))
	}
}
