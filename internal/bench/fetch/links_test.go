package main

import "testing"

// TestEnginesFindTheSameLinks checks that all engines do the same work, and that the baselines find
// nothing.
func TestEnginesFindTheSameLinks(t *testing.T) {
	pages := generated()
	const page = 7
	for _, e := range linkEngines {
		want := 10 * page
		if e.name == "tokenizer loop" || e.name == "tree" {
			want = 0
		}
		if got := e.find(pages[page]); got != want {
			t.Errorf("%s found %d links, want %d", e.name, got, want)
		}
	}
}
