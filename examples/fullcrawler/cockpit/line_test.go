package cockpit

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// FuzzLine asserts that a line has the bytes of encoding/json.
func FuzzLine(f *testing.F) {
	f.Add("http://a.test/?a=1&b=2", "fetched", "", "", uint32(0), uint32(0), int16(0))
	f.Add("http://a.test/<\">\\", "x", "a\tb\r\nc\x00\x7f", "train-ai=n", uint32(1<<31), uint32(5), int16(60))
	f.Add("\u2028\u2029\xff\xc3", "\u00fc", "\x7f", "\b\f", uint32(1), uint32(1_000_000), int16(-90))
	f.Add("", "", "", "", uint32(1)<<30, uint32(999_999_999), int16(90))
	f.Fuzz(func(t *testing.T, url, fate, why, signals string, sec, nsec uint32, zone int16) {
		at := time.Unix(int64(sec), int64(nsec))
		line := Line{
			Time: at.UTC(), URL: url, Fate: stage.Fate(fate), Says: fate, Signals: signals, Why: why,
			Next: at.In(time.FixedZone("", int(zone)%1440*60)),
		}
		for range 2 {
			want, err := json.Marshal(line)
			require.NoError(t, err)
			require.Equal(t, "before"+string(want), string(line.appendJSON([]byte("before"))))
			line.Time, line.Next = line.Next, time.Time{}
		}
	})
}

func TestAnOrdinaryLineNeedsNoAllocation(t *testing.T) {
	at := time.Unix(1_800_000_000, 5_000_000).UTC()
	line := Line{
		Time: at, URL: "http://a.test/?a=1&b=2", Fate: stage.Fetched, Says: "fetched", Next: at,
	}
	room := make([]byte, 0, 1024)
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = line.appendJSON(room) }))
}

func BenchmarkLine(b *testing.B) {
	at := time.Unix(1_800_000_000, 5_000_000).UTC()
	line := Line{
		Time: at, URL: "http://a.test/?a=1&b=2", Fate: stage.Fetched, Says: "fetched", Next: at,
	}
	b.Run("hand", func(b *testing.B) {
		b.ReportAllocs()
		for room := make([]byte, 0, 1024); b.Loop(); {
			_ = line.appendJSON(room)
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = json.Marshal(line)
		}
	})
}

// A prefix to erase ends anywhere: the dot of hidden files is no segment, or a slip would erase the host.
func TestPrefixesToErase(t *testing.T) {
	for text, want := range map[string]string{
		"https://a.test/.*": "https://a.test/.", "a.test/dir/..*": "https://a.test/dir/..", "a.test/dir/*": "https://a.test/dir/",
	} {
		got, err := parseTarget(text)
		require.NoError(t, err)
		require.Equal(t, target{prefix: want}, got)
		require.Equal(t, []string{"http" + want[len("https"):], want}, got.lines())
	}
	_, err := parseTarget("https://a.test/#!/*")
	require.ErrorIs(t, err, errUsage)
}
