package stage

import (
	"log"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		logger := log.New(NewTrickle(&out), "", 0)
		for range 1000 {
			logger.Print("unhandled frame")
		}
		time.Sleep(trickleSpan)
		logger.Print("another day")
		require.Equal(t, strings.Repeat("unhandled frame\n", trickleLines)+
			"990 more lines like these were dropped\nanother day\n", out.String())
	})
}
