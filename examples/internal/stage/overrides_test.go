package stage

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOverridesNameHostsInAnySpelling: an owner who asks to be left alone is, however the operator writes
// the name.
func TestOverridesNameHostsInAnySpelling(t *testing.T) {
	var o Overrides
	require.NoError(t, o.Reload(strings.NewReader(
		"Müller.test off\ndot.test. off\nwww.parent.test delay=1m\nparent.test off\n[2001:DB8::1] off\n127.1 off")))
	for _, host := range []string{
		"xn--mller-kva.test", "dot.test", "dot.test.", "www.parent.test", "a.www.parent.test", "[2001:db8::1]", "127.0.0.1",
	} {
		require.True(t, o.Of(host).Off, host)
	}
	require.False(t, o.Of("test").Off)
	require.Contains(t, o.Lines(), "www.parent.test delay=1m", "it is off, too")
	require.Contains(t, o.Lines(), "xn--mller-kva.test off")
	for _, line := range []string{
		"*.wild.test off", ".wild.test off", "http://url.test/ off", "a.test:80 off", "a.test off\nA.test delay=1s",
	} {
		require.Error(t, o.Reload(strings.NewReader(line)), line)
	}
	require.True(t, o.Of("dot.test").Off, "the old settings remain")
}

// TestOverridesHoldForHostsBelow that have lines of their own: an owner who asks for a longer delay gets it everywhere.
func TestOverridesHoldForHostsBelow(t *testing.T) {
	var o Overrides
	require.NoError(t, o.Reload(strings.NewReader(
		"shop.test delay=30s pages=9\nwww.shop.test depth=3\na.www.shop.test delay=7s")))
	for host, want := range map[string]Override{
		"shop.test": {Delay: 30 * time.Second, MaxPages: 9}, "www.shop.test": {Delay: 30 * time.Second, MaxPages: 9, MaxDepth: 3},
		"b.a.www.shop.test": {Delay: 7 * time.Second, MaxPages: 9, MaxDepth: 3}, "test": {},
	} {
		got := o.Of(host)
		got.text = ""
		require.Equal(t, want, got, host)
	}
	require.Len(t, o.Lines(), 3)
}
