package cockpit

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// FuzzLine asserts that a line has the bytes of encoding/json, or that both return an error.
func FuzzLine(f *testing.F) {
	f.Add("http://a.test/?a=1&b=2", "fetched", "", "", int64(0), int64(0), 0)
	f.Add("http://a.test/<\">\\", "x", "a\tb\r\nc\x00\x7f", "train-ai=n", int64(1<<31), int64(5), 3600)
	f.Add("\u2028\u2029\xff\xc3", "\u00fc", "\x7f", "\b\f", int64(-1), int64(1_000_000), -90)
	f.Add("", "", "", "", int64(1)<<40, int64(999_999_999), 90_000)
	f.Fuzz(func(t *testing.T, url, fate, why, signals string, sec, nsec int64, zone int) {
		at := time.Unix(sec, nsec)
		line := Line{
			Time: at.UTC(), URL: url, Fate: stage.Fate(fate), Says: fate, Signals: signals, Why: why,
			Next: at.In(time.FixedZone("", zone)),
		}
		for range 2 {
			want, refused := json.Marshal(line)
			got, err := line.appendJSON([]byte("before"))
			if refused != nil {
				require.Error(t, err)
				require.Equal(t, "before", string(got))
			} else {
				require.NoError(t, err)
				require.Equal(t, "before"+string(want), string(got))
			}
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
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = line.appendJSON(room) }))
}

func BenchmarkLine(b *testing.B) {
	at := time.Unix(1_800_000_000, 5_000_000).UTC()
	line := Line{
		Time: at, URL: "http://a.test/?a=1&b=2", Fate: stage.Fetched, Says: "fetched", Next: at,
	}
	b.Run("hand", func(b *testing.B) {
		b.ReportAllocs()
		for room := make([]byte, 0, 1024); b.Loop(); {
			_, _ = line.appendJSON(room)
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
