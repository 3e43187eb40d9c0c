package wall_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/wall"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		status     int
		field      string // "Name: value"
		body       string
	}{
		{"Cloudflare", "Cloudflare", 403, "Cf-Mitigated: challenge", "<title>Just a moment...</title>"},
		{"Cloudflare with 200", "Cloudflare", 200, "Cf-Mitigated: Challenge ", ""},
		{"an error of Cloudflare's", "", 403, "Server: cloudflare", "<title>Attention Required! | Cloudflare</title>"},
		{"another value", "", 403, "Cf-Mitigated: block", ""},
		{"AWS WAF, a captcha", "AWS WAF", 405, "X-Amzn-Waf-Action: captcha", ""},
		{"AWS WAF, a challenge", "AWS WAF", 202, "X-Amzn-Waf-Action: challenge", ""},
		{"a page that AWS WAF has let through", "", 200, "X-Amzn-Waf-Action: challenge", ""},
		{"a method that is not allowed", "", 405, "", ""},
		{"Vercel", "Vercel", 429, "X-Vercel-Mitigated: challenge", ""},
		{"DataDome, JSON", "DataDome", 403, "X-Dd-B: 2", `{"url":"https://geo.captcha-delivery.com/captcha/"}`},
		{"DataDome, HTML", "DataDome", 403, "X-Datadome: protected",
			`<script src="https://ct.captcha-delivery.com/c.js"></script>`},
		{"a page that DataDome has let through", "", 200, "X-Datadome: protected", "about captcha-delivery.com"},
		{"a refusal by the site behind DataDome", "", 403, "X-Datadome: protected", "members only"},
		{"Akamai, JSON", "Akamai", 428, "", `{"sec-cp-challenge": "true","provider":"crypto"}`},
		{"Akamai, HTML", "Akamai", 428, "", `<iframe src="/_sec/cp_challenge/crypto_message-4-3.htm">`},
		{"a condition that is required", "", 428, "", "If-Match, please"},
		{"Imperva", "Imperva", 200, "", `<script src="/_Incapsula_Resource?CWUDNSAI=1"></script>` +
			`<iframe>Request unsuccessful. Incapsula incident ID: 1-2</iframe>`},
		{"a page behind Imperva", "", 200, "", `<p>news</p><script src="/_Incapsula_Resource?SWJIYLWA=1"></script>`},
		{"Anubis", "Anubis", 200, "", `<script id="anubis_version" type="application/json">"1"</script>` +
			`<img src="/.within.website/x/cmd/anubis/static/img/pensive.webp">`},
		{"a page about Anubis", "", 200, "", `it has <code>id=&quot;anubis_version&quot;</code>`},
		{"go-away", "go-away", 403, "", `<link href="/.well-known/.git.gammaspectra.live/git/go-away/x.css">`},
		{"a page", "", 200, "", "<title>Hello</title>"},
		{"an article about go-away", "", 200, "", "<p>assets are below /.well-known/.git.gammaspectra.live/git/go-away/"},
		{"an article about Imperva", "", 200, "", "<p>It loads /_Incapsula_Resource and says Incapsula incident ID: 1"},
		{"too far below", "", 200, "", strings.Repeat(" ", wall.Head) + "=\"/.well-known/.git.gammaspectra.live/git/go-away/"},
		{"nothing", "", 0, "", ""},
	} {
		header := http.Header{}
		if name, value, ok := strings.Cut(tt.field, ": "); ok {
			header.Set(name, value)
		}
		require.Equal(t, tt.want, wall.Of(tt.status, header, []byte(tt.body)), tt.name)
	}
}

func TestOfAllocatesNothing(t *testing.T) {
	body := []byte(strings.Repeat("<p>text</p>", 2000))
	header := http.Header{"X-Datadome": {"protected"}}
	require.Zero(t, testing.AllocsPerRun(10, func() { wall.Of(403, header, body) }))
}

func Example() {
	header := http.Header{"Cf-Mitigated": {"challenge"}}
	fmt.Println(wall.Of(200, header, []byte("<title>Just a moment...</title>")))
	// Output: Cloudflare
}

// TestWhereverItIs: a mark is found at any place, behind any number of bytes that look like its start.
func TestWhereverItIs(t *testing.T) {
	const mark = "=\"/.well-known/.git.gammaspectra.live/git/go-away/"
	for n := range 3 * len(mark) {
		for _, filler := range []string{"-", "/", "/.well-", mark[:len(mark)-1]} {
			before := strings.Repeat(filler, n)[:n]
			for _, body := range []string{before + mark, before + mark[:len(mark)-1], before + mark[1:]} {
				require.Equal(t, strings.Contains(body, mark), wall.Of(200, nil, []byte(body)) == "go-away", body)
			}
		}
	}
}
