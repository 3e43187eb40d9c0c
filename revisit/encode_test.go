package revisit

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestJSONKeepsEverything(t *testing.T) {
	type record struct {
		Page   History
		Prior  Prior
		Pulse  Pulse
		Hints  Hints
		Policy Bayes
		MLE    MLE
	}
	h := walk(step{7, true}, step{3, false})
	hints := Hints{}
	hints.Observe(h, Visit{At: h.Last().Add(dayLong), Changed: true}, 1)
	pulse := pulseOf([]byte{24, 0, 24, 1, 24, 2, 24, 5})
	prior := Fit([]History{h}, Prior{})
	for _, want := range []record{{}, {h, prior, pulse, hints, Feed(), MLE{Rep: Shortest}}} {
		text, err := json.Marshal(want)
		require.NoError(t, err)
		var got record
		require.NoError(t, json.Unmarshal(text, &got), "%s", text)
		require.Equal(t, want, got)
	}
	for _, v := range []any{new(History), new(Prior), new(Pulse), new(Hints)} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, `""`, string(text), "%T", v)
		require.ErrorIs(t, json.Unmarshal([]byte(`"not base64!"`), v), ErrCorrupt, "%T", v)
		require.ErrorIs(t, json.Unmarshal([]byte(`"AAAA"`), v), ErrCorrupt, "%T", v)
	}
}

func TestUnmarshalRefusesWhatNoPriorIs(t *testing.T) {
	good, err := Fit([]History{walk(step{7, true})}, Prior{}).AppendBinary(nil)
	require.NoError(t, err)
	for name, spoil := range map[string]func(b []byte) []byte{
		"too short":       func(b []byte) []byte { return b[1:] },
		"a weight of 0":   func(b []byte) []byte { clear(b[:4]); return b },
		"a negative one":  func(b []byte) []byte { b[7] |= 0x80; return b },
		"one that is NaN": func(b []byte) []byte { copy(b[4:], "\xff\xff\xff\xff"); return b },
	} {
		p := Prior{}
		require.ErrorIs(t, p.UnmarshalBinary(spoil(append([]byte{}, good...))), ErrCorrupt, name)
		require.Equal(t, Prior{}, p)
	}
	var p Prior
	require.NoError(t, p.UnmarshalBinary(make([]byte, priorSize)))
	require.Equal(t, Prior{}, p)
}

// pulseOf makes visits to the pages of a host from the bytes.
func pulseOf(data []byte) (p Pulse) {
	var pages [4]History
	at := start
	for ; len(data) >= 2; data = data[2:] {
		at = at.Add(time.Duration(data[0]) * time.Hour << (data[1] >> 5))
		page := &pages[data[1]>>1&3]
		v := Visit{At: at, Changed: data[1]&1 != 0}
		v.Elapsed = p.Observe(*page, v)
		*page = page.Observe(v)
	}
	return p
}

func FuzzPulseKeepsItsRulesAndItsBytes(f *testing.F) {
	f.Add([]byte{24, 0, 24, 1, 24, 2, 24, 5, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := pulseOf(data)
		b, err := p.AppendBinary(nil)
		if err != nil || len(b) != pulseSize {
			t.Fatal(len(b), err)
		}
		var again Pulse
		if err := again.UnmarshalBinary(b); err != nil || again != p {
			t.Fatalf("%+v became %+v, %v", p, again, err)
		}
	})
}

// What parses is written back to the same bytes, and lives on.
func FuzzPulseUnmarshalIsTheInverse(f *testing.F) {
	seed, _ := pulseOf([]byte{24, 0, 24, 1, 24, 2, 24, 5}).AppendBinary(nil)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		var p Pulse
		if p.UnmarshalBinary(data) != nil {
			t.Skip()
		}
		b, _ := p.AppendBinary(nil)
		if string(b) != string(data) {
			t.Fatalf("%x became %x", data, b)
		}
		random := rand.New(rand.NewPCG(1, 0))
		h := walk(quietFor(3)...)
		for range 10 {
			at := h.Last().Add(time.Duration(random.Int64N(int64(60 * dayLong))))
			v := Visit{At: at, Changed: random.IntN(2) == 0}
			elapsed := p.Observe(h, v)
			if fault := p.fault(); fault != "" || elapsed < 0 || math.IsNaN(elapsed.Hours()) {
				t.Fatalf("%+v: %s, %v", p, fault, elapsed)
			}
			v.Elapsed = elapsed
			h = h.Observe(v)
		}
	})
}

// What parses is written back to the same bytes, and stays readable whatever is observed.
func FuzzHintsUnmarshalIsTheInverse(f *testing.F) {
	var seed Hints
	h := walk(quietFor(3)...)
	seed.Observe(h, Visit{At: h.Last().Add(dayLong), Changed: true}, 1)
	b, _ := seed.AppendBinary(nil)
	f.Add(b)
	f.Fuzz(func(t *testing.T, data []byte) {
		var k, again Hints
		if k.UnmarshalBinary(data) != nil {
			t.Skip()
		}
		if b, _ := k.AppendBinary(nil); string(b) != string(data) {
			t.Fatalf("%x became %x", data, b)
		}
		h := walk(quietFor(3)...)
		for n := range 4 {
			v := Visit{At: h.Last().Add(dayLong), Changed: n%2 == 0}
			k.Observe(h, v, n)
			h = h.Observe(v)
		}
		b, _ := k.AppendBinary(nil)
		if err := again.UnmarshalBinary(b); err != nil || again != k {
			t.Fatalf("%+v became %+v, %v", k, again, err)
		}
	})
}

// TestVersionBefore: a History of the version before is not taken for damage.
func TestVersionBefore(t *testing.T) {
	h := History{last: 7}
	err := h.UnmarshalBinary(make([]byte, 32))
	require.ErrorIs(t, err, ErrVersion)
	require.NotErrorIs(t, err, ErrCorrupt)
	require.Equal(t, History{last: 7}, h)
}
