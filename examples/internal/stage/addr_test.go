package stage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLiteral(t *testing.T) {
	for host, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::1", "[2001:db8::1]": "2001:db8::1",
	} {
		addr, ok := Literal(host)
		require.True(t, ok)
		require.Equal(t, want, addr.String())
	}
	for _, host := range []string{"", "[]", "a.example", "[a.example]", "1.2.3"} {
		_, ok := Literal(host)
		require.False(t, ok, host)
	}
}
