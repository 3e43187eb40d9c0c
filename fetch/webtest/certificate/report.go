package certificate

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// maxProofs is how many breaches of a check a table and JUnit's XML show. JSON has all.
const maxProofs = 3

// WriteTable writes verdicts for people: a table, and below it the proofs of what failed.
func WriteTable(w io.Writer, verdicts []Verdict) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, v := range verdicts {
		fmt.Fprintf(table, "%s\t%s\t%s\n", v.Check, v.Result, v.Text)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, v := range verdicts {
		if v.Result != Failed && v.Result != Partial {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s:\n%s", v.Check, proofText(v)); err != nil {
			return err
		}
	}
	return nil
}

// proofText returns the first proofs of a verdict, with their lines of the log.
func proofText(v Verdict) (text string) {
	for i, p := range v.Proof {
		if i == maxProofs {
			return text + fmt.Sprintf("  and %d more\n", len(v.Proof)-i)
		}
		text += "  " + p.Text + "\n"
		for _, r := range p.Requests {
			text += "    " + line(r) + "\n"
		}
	}
	return text
}

// line returns a line of the log.
func line(r webtest.Request) string {
	return fmt.Sprintf("%s  %s  %s %s  %d  %q", r.Time.UTC().Format("15:04:05.000"), r.Addr, r.Method,
		r.URL(), r.Status, r.UserAgent)
}

// WriteJSON writes verdicts for programs, with all proofs.
func WriteJSON(w io.Writer, verdicts []Verdict) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(verdicts)
}

// WriteJUnit writes verdicts in the XML that continuous integration shows as test results.
func WriteJUnit(w io.Writer, verdicts []Verdict) error {
	type message struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type test struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *message `xml:"failure"`
		Skipped *message `xml:"skipped"`
	}
	suite := struct {
		XMLName  xml.Name `xml:"testsuite"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Cases    []test   `xml:"testcase"`
	}{Name: "webtest", Tests: len(verdicts)}
	for _, v := range verdicts {
		t, m := test{Class: "politeness", Name: v.Check}, &message{v.Text, proofText(v)}
		switch v.Result {
		case Failed:
			suite.Failures++
			t.Failure = m
		case Untested, Partial:
			suite.Skipped++
			t.Skipped = m
		}
		suite.Cases = append(suite.Cases, t)
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}
