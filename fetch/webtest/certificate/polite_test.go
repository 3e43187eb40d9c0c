package certificate_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/fetch/webtest/certificate"
)

// crawl takes the place of the reader's crawler in docs/polite.md. It breaks as many rules as
// possible.
func crawl(web *webtest.Web, _ string) {
	client := web.Client()
	for h := range web.Hosts() {
		for url := range h.Pages() {
			resp, err := client.Get(url)
			if err == nil {
				resp.Body.Close()
			}
		}
	}
}

// Example_polite is the program of docs/polite.md.
func Example_polite() {
	trial, err := certificate.Start(certificate.Options{Delay: time.Second, Complete: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer trial.Web.Close()

	crawl(trial.Web, trial.Seed()) // your crawler, which reaches the web through its Client or Dial

	for _, v := range trial.Verdicts() {
		fmt.Printf("%s: %s\n", v.Check, v.Result)
	}
	// Output:
	// host delay: FAILED
	// address delay: FAILED
	// robots.txt: FAILED
	// Crawl-delay: untested
	// Retry-After: FAILED
	// redirects to other hosts: untested
	// private addresses: untested
	// twice: passed
	// completeness: FAILED
}

// docs/polite.md must show the program as it is tested here.
func TestPolitePageShowsTheProgram(t *testing.T) {
	source, err := os.ReadFile("polite_test.go")
	require.NoError(t, err)
	_, program, ok := strings.Cut(string(source), "func Example_polite() {\n")
	require.True(t, ok)
	program, _, ok = strings.Cut(program, "\t// Output:")
	require.True(t, ok)
	page, err := os.ReadFile("../../../docs/polite.md")
	require.NoError(t, err)
	require.Contains(t, string(page), strings.ReplaceAll("\n"+program, "\n\t", "\n"), "docs/polite.md")
}
