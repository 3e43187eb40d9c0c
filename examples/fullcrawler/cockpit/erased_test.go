package cockpit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamedWithinAURL: a reason that names what is erased within another URL, escaped or not, goes too.
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
		{"http://victim.example/private", "http://victim.example/privately", false},
		{"t.co", "http://reddit.com/t.com", false},
	} {
		one, err := parseTarget(c.target)
		require.NoError(t, err)
		e := &erasure{targets: []target{one}}
		require.NoError(t, e.list.Reload(strings.NewReader(strings.Join(one.lines(), "\n")), "erase"))
		require.Equal(t, c.named, e.named(c.text), "%s in %s", c.target, c.text)
	}
}
