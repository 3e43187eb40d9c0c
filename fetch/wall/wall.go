// Package wall recognizes the answers of bot walls: a challenge to the visitor in place of the page.
//
//	if by := wall.Of(resp.StatusCode, resp.Header, body); by != "" {
//		// not the page: keep the old version, slow down, tell the operator who is in the way
//	}
//
// Such an answer may have the status 200 and differs each time. A crawler that takes it for the page
// stores rubbish and believes that the page changes all the time.
//
// # Promise
//
// It relies only on what the makers of the walls, or others who have to deal with them, have
// documented; each signal has its source beside it. It costs a few searches in the first [Head] bytes
// of the body, and allocates nothing.
//
// # What it does not do
//
// It does not recognize plain refusals: a 403 without a challenge says enough. It helps nobody past a
// wall. A site that puts one up does not want to be crawled, or not like this.
package wall

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
)

// Head is how many bytes of a body are examined.
const Head = 8 << 10

// A signal is the mark of a wall: all of it must be there. Paths are those of attributes, which an
// article about a wall does not have.
type signal struct {
	by           string
	statuses     []int // nil means any
	field, value string
	parts        [][]byte // of the body
}

var signals = []signal{
	// "The Challenge Page response will have the cf-mitigated header present and set to challenge":
	// https://developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/detect-response/
	{by: "Cloudflare", field: "Cf-Mitigated", value: "challenge"},

	// https://docs.aws.amazon.com/waf/latest/APIReference/API_CaptchaAction.html and
	// API_ChallengeAction.html, which give the status and the field.
	{by: "AWS WAF", statuses: []int{405}, field: "X-Amzn-Waf-Action", value: "captcha"},
	{by: "AWS WAF", statuses: []int{202}, field: "X-Amzn-Waf-Action", value: "challenge"},

	// The Vercel firewall: https://www.urlcheckr.app/docs/troubleshooting/vercel-firewall-challenge
	{by: "Vercel", field: "X-Vercel-Mitigated", value: "challenge"},

	// 401 and 403 are DataDome's own answers, X-DataDome marks what it protects, and X-DD-B what it
	// blocks with JSON: https://docs.datadome.co/reference/validate-request. Its pages load the
	// challenge from a host of its own.
	{by: "DataDome", statuses: []int{401, 403}, field: "X-Dd-B"},
	{by: "DataDome", statuses: []int{401, 403}, field: "X-Datadome", parts: parts("captcha-delivery.com")},

	// https://docs.hypersolutions.co/akamai-web/handling-428-status-code-sec-cpt
	{by: "Akamai", statuses: []int{428}, parts: parts("sec-cp-challenge")},
	{by: "Akamai", statuses: []int{428}, parts: parts("/_sec/cp_challenge/")},

	// The page with the incident and the script, which other pages of such sites have, too:
	// https://scrappey.com/qa/web-automation/how-imperva-detects-bots
	{by: "Imperva", parts: parts(`="/_Incapsula_Resource`, "Incapsula incident ID")},

	// https://github.com/TecharoHQ/anubis, web/index.templ
	{by: "Anubis", parts: parts(`id="anubis_version"`, "/.within.website/x/cmd/anubis/")},

	// https://git.gammaspectra.live/git/go-away, the assets of its page
	{by: "go-away", parts: parts(`="/.well-known/.git.gammaspectra.live/git/go-away/`)},
}

func parts(texts ...string) (p [][]byte) {
	for _, text := range texts {
		p = append(p, []byte(text))
	}
	return p
}

// Of returns whose wall has given an answer; "" means that it is none that is known. Only the start of
// the body matters. It must be decoded.
func Of(status int, header http.Header, body []byte) (by string) {
	body = body[:min(len(body), Head)]
	for i := range signals {
		if signals[i].in(status, header, body) {
			return signals[i].by
		}
	}
	return ""
}

func (s *signal) in(status int, header http.Header, body []byte) bool {
	if s.statuses != nil && !slices.Contains(s.statuses, status) {
		return false
	}
	if s.field != "" {
		values := header[s.field]
		if len(values) == 0 || s.value != "" && !strings.EqualFold(strings.TrimSpace(values[0]), s.value) {
			return false
		}
	}
	missing := func(part []byte) bool { return !bytes.Contains(body, part) }
	return !slices.ContainsFunc(s.parts, missing)
}
