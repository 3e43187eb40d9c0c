//go:build linux

package main

import (
	"strings"
	"testing"
)

// TestStoresAgree runs all stores on a short stream and compares the results.
func TestStoresAgree(t *testing.T) {
	for _, bounded := range []bool{true, false} {
		o := options{urls: 3000, sightings: 20_000, memory: 30_000, bounded: bounded}
		var found []uint64
		for _, s := range subjects {
			n, err := run(s, t.TempDir(), o)
			if err != nil {
				t.Fatal(s.name, err)
			}
			found = append(found, n)
		}
		// All but exp(-20000/3000) of the URLs are drawn at least once.
		if found[0] != found[1] || found[0] != found[2] || found[0] < 2980 || found[0] > 3000 {
			t.Errorf("the stores found %d URLs, want the same number in each, nearly 3000", found)
		}
	}
}

func TestCompareReportsAll(t *testing.T) {
	var out strings.Builder
	o := options{urls: 100, sightings: 1000, memory: 10_000}
	if err := compare(&out, t.TempDir(), subjects, o, 3); err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects {
		if n := strings.Count(out.String(), s.name); n != 3+1 {
			t.Errorf("%s is listed %d times, want 4:\n%s", s.name, n, out.String())
		}
	}
}
