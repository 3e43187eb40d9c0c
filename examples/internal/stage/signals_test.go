package stage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots/usage"
)

// TestStatedIsBounded: the labels that matter are kept, however many others there are.
func TestStatedIsBounded(t *testing.T) {
	var signals []usage.Preference
	for n := range 10_000 {
		signals = append(signals, usage.Preference{Label: fmt.Sprintf("made-up-%d", n), Allowed: true})
	}
	signals = append(signals, usage.Preference{Label: "train-ai"}, usage.Preference{Label: strings.Repeat("x", 1000)})
	stated := Stated(signals)
	require.Contains(t, stated, "made-up-0=y ")
	require.Contains(t, stated, "train-ai=n")
	require.Less(t, len(stated), 300)
}
