package cockpit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamedWithinAURL: a reason that names the host of what is erased goes too, also within another URL, escaped or
// not.
func TestNamedWithinAURL(t *testing.T) {
	for _, c := range []struct {
		target, text string
		named        bool
	}{
		{"http://victim.example/private", "http://other.example/login?next=http://victim.example/private", true},
		{"https://victim.example/private", "https://other.example/login?next=https://victim.example/private", true},
		{"http://victim.example/private", "https://other.example/login?next=http%3A%2F%2Fvictim.example%2Fprivate&x=1", true},
		{"victim.example", "https://other.example/login?next=http%253A%252F%252Fvictim.example%252Fprivate", true},
		{"http://victim.example/private", "robots: //victim.example/private redirected", true},
		{"http://victim.example/private", "http://victim.example/private;http://x.example/", true},
		{"http://victim.example/private", "(http://victim.example/private), then", true},
		{"http://victim.example/private", "dial VICTIM.example:443: refused", true},
		{"http://bücher.example/private", "http://bücher.example/private, and more", true},
		{"http://bücher.example/private", "lookup xn--bcher-kva.example.: no such host", true},
		{"http://[2001:db8::1]/private", "dial tcp [2001:db8::1]:80", true},
		{"http://victim.example/private", "http://www.victim.example/private", false},
		{"victim.example", "http://www.victim.example/private", true},
		{"t.co", "http://reddit.com/t.com", false},
	} {
		one, err := parseTarget(c.target)
		require.NoError(t, err)
		e := &erasure{targets: []target{one}}
		require.NoError(t, e.list.Reload(strings.NewReader(strings.Join(one.lines(), "\n")), "erase"))
		require.Equal(t, c.named, e.named(c.text), "%s in %s", c.target, c.text)
	}
}
