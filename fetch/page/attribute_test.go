package page_test

import (
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/stretchr/testify/require"
)

func TestSrcset(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"white space and commas", " , ,\t", ""},
		{"one", "a.png", "a.png"},
		{"densities", "a 1x, b 2x", "a b"},
		{"widths without spaces", "a 1w,b 2w", "a b"},
		{"no descriptors", "a, b", "a b"},
		{"a comma without a space belongs to the URL", "a,b 2x", "a,b"},
		{"several commas end it", "a,,, b", "a b"},
		{"a data URL", "data:image/png;base64,xyz 1x, b", "data:image/png;base64,xyz b"},
		{"parentheses hide a comma", "a 1x (x, y) z, b", "a b"},
		{"unclosed parentheses hide the rest", "a (x, b", "a"},
		{"a comma after white space", "a , b", "a b"},
		{"line breaks", "\n  a\n 1x\n,\n  b 2x\n", "a b"},
		{"a vertical tab is not white space", "a\vb 1x", "a\vb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, strings.Join(page.SrcsetURLs(tt.in), " "), "%q", tt.in)
		})
	}
}

// FuzzSrcset checks that no URL starts or ends with white space or a comma, and that the URLs,
// joined with commas and spaces, are found again.
func FuzzSrcset(f *testing.F) {
	f.Add("a 1x, b 2x")
	f.Add("a,,b (x, y) , \tc")
	f.Fuzz(func(t *testing.T, in string) {
		urls := page.SrcsetURLs(in)
		for _, url := range urls {
			if url == "" || strings.Trim(url, ", \t\n\f\r") != url {
				t.Errorf("SrcsetURLs(%q) yields %q", in, url)
			}
		}
		again := page.SrcsetURLs(strings.Join(urls, ", "))
		if strings.Join(again, " ") != strings.Join(urls, " ") {
			t.Errorf("SrcsetURLs(%q) = %q, then %q", in, urls, again)
		}
	})
}

// TestRefresh has a case for each step of the HTML standard.
func TestRefresh(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"a time", "5", ""},
		{"a time and a semicolon", "5;", ""},
		{"a URL", "5; url=x", "x"},
		{"a comma", "5, url=x", "x"},
		{"white space only", "5 url=x", "x"},
		{"without spaces, in capitals", "0;URL=x", "x"},
		{"white space everywhere", " 5 ; url = x ", "x"},
		{"quotes", `5; url="x y" z`, "x y"},
		{"single quotes", "5; url='x\"y'z", `x"y`},
		{"an unclosed quote", "5; url='x y", "x y"},
		{"quotes without url=", "5; 'x' y", "x"},
		{"no url=", "5; x", "x"},
		{"a URL that begins like url=", "5; urlx", "urlx"},
		{"url without =", "5; url x", "url x"},
		{"a fraction", "0.5; url=x", "x"},
		{"a fraction only", ".5; url=x", "x"},
		{"no time", "; url=x", ""},
		{"a URL only", "url=x", ""},
		{"a negative time", "-1; url=x", ""},
		{"text after the time", "5x; url=x", ""},
		{"an empty URL", "5; url=", ""},
		{"an empty URL in quotes", "5; url=''", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, page.RefreshURL(tt.in), "%q", tt.in)
		})
	}
}

// FuzzRefresh checks that a URL that is found is part of the content, and is found again in the
// simplest form.
func FuzzRefresh(f *testing.F) {
	f.Add("5; url='x'")
	f.Add(".;,url==")
	f.Fuzz(func(t *testing.T, in string) {
		url := page.RefreshURL(in)
		if !strings.Contains(in, url) {
			t.Errorf("RefreshURL(%q) = %q", in, url)
		}
		if strings.ContainsAny(url, `"`) {
			return
		}
		if again := page.RefreshURL(`0;url="` + url + `"`); again != url {
			t.Errorf("RefreshURL(%q) = %q, then %q", in, url, again)
		}
	})
}
