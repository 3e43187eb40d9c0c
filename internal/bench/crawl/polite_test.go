package main

import (
	"os"
	"testing"
	"time"
)

// TestEarly reads a log whose lines are in the order of the responses, and counts early requests.
func TestEarly(t *testing.T) {
	b := &bench{dir: t.TempDir()}
	log := "2026-01-01T00:00:00Z\ta.test\t127.0.0.1\tGET\n" +
		"2026-01-01T00:00:02.3Z\tb.test\t127.0.0.2\tGET\n" +
		"2026-01-01T00:00:00.97Z\ta.test\t127.0.0.1\tGET\n" + // within the slack
		"2026-01-01T00:00:01.5Z\tc.test\t127.0.0.1\tGET\n" + // another host of the address
		"2026-01-01T00:00:01.8Z\tb.test\t127.0.0.2\tGET\n"
	if err := os.WriteFile(b.path("log"), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	asked, err := b.requests()
	if err != nil {
		t.Fatal(err)
	}
	if len(asked) != 5 || asked[4].at.Sub(asked[0].at) != 2300*time.Millisecond {
		t.Errorf("read %v", asked)
	}
	hosts, hostGap := early(asked, func(r request) string { return r.host })
	addrs, addrGap := early(asked, func(r request) string { return r.addr })
	if hosts != 1 || addrs != 2 {
		t.Errorf("%d too early for a host and %d for an address, want 1 and 2", hosts, addrs)
	}
	if hostGap != 500*time.Millisecond || addrGap != hostGap {
		t.Errorf("the shortest gaps are %v and %v, want 500ms for both", hostGap, addrGap)
	}
	if err := os.WriteFile(b.path("log"), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.requests(); err == nil {
		t.Error("an invalid log was accepted")
	}
}
