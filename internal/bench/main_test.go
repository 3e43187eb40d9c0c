package main

import (
	"maps"
	"path/filepath"
	"testing"
)

// TestReportKeepsWhatItHas reads a report back that has some of the sections.
func TestReportKeepsWhatItHas(t *testing.T) {
	name := filepath.Join(t.TempDir(), "REPORT.md")
	if none, err := readReport(name); err != nil || len(none) != 0 {
		t.Fatalf("no report has %v, %v", none, err)
	}
	want := map[string]string{
		steps[0].title():            "2026-11-22, 3s:\n\n```\ngo run\n\n# a heading of its own\n```\n",
		steps[len(steps)-1].title(): "2026-11-23, 4s:\n\n```\ngo run\n```\n\n![a](plots/a.svg)\n",
	}
	for range 2 { // the second time from what was read
		if err := writeReport(name, want, false); err != nil {
			t.Fatal(err)
		}
		got, err := readReport(name)
		if err != nil || !maps.Equal(got, want) {
			t.Fatalf("read %q, %v, want %q", got, err, want)
		}
		want = got
	}
}

// TestStepsHaveTitlesOfTheirOwn, as sections of a report are known by them.
func TestStepsHaveTitlesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range steps {
		if seen[s.title()] {
			t.Errorf("%q comes twice", s.title())
		}
		seen[s.title()] = true
	}
}
