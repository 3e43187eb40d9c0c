package main

import (
	"maps"
	"path/filepath"
	"testing"
)

// TestReportKeepsItsSections writes a report with some of the sections and reads it back.
func TestReportKeepsItsSections(t *testing.T) {
	name := filepath.Join(t.TempDir(), "REPORT.md")
	if none, err := readReport(name); err != nil || len(none) != 0 {
		t.Fatalf("a missing report has sections %v, error %v", none, err)
	}
	want := map[string]string{
		steps[0].title():            "2026-11-22, 3s:\n\n```\ngo run\n\n# a heading of its own\n```\n",
		steps[len(steps)-1].title(): "2026-11-23, 4s:\n\n```\ngo run\n```\n",
	}
	for range 2 { // the second time, write what was read
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

// TestStepTitlesAreUnique checks the titles, which identify the sections of a report.
func TestStepTitlesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range steps {
		if seen[s.title()] {
			t.Errorf("%q is not unique", s.title())
		}
		seen[s.title()] = true
	}
}
