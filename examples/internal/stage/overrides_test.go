package stage

import (
	"strings"
	"testing"

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
	require.Contains(t, o.Lines(), "www.parent.test delay=1m", "it takes the place of what would hold otherwise")
	require.Contains(t, o.Lines(), "xn--mller-kva.test off")
	for _, line := range []string{
		"*.wild.test off", ".wild.test off", "http://url.test/ off", "a.test:80 off", "a.test off\nA.test delay=1s",
	} {
		require.Error(t, o.Reload(strings.NewReader(line)), line)
	}
	require.True(t, o.Of("dot.test").Off, "the old settings remain")
}
