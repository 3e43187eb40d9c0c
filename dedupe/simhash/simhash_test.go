package simhash

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

func of(text string) Print { return Of([]byte(text)) }

// prose returns n words of a made-up language.
func prose(random *rand.Rand, n int) []string {
	words := make([]string, n)
	for i := range words {
		for range 1 + random.IntN(3) {
			words[i] += string("bcdfglmnprstv"[random.IntN(13)]) + string("aeiou"[random.IntN(5)])
		}
	}
	return words
}

func TestCompareIgnoresVolatileWords(t *testing.T) {
	for _, tt := range []struct{ name, before, after string }{
		{"counter", "You are visitor 1234 of this page", "You are visitor 1235 of this page"},
		{"counter with marks", "Seen 1,234.5 times already", "Seen 99 times already"},
		{"date", "News of Monday, 3 May 2026: rain", "News of Tuesday, 24 June 2026: rain"},
		{"time", "Made at 10:31 am in 0.02 s here", "Made at 9:05 pm in 1.7 s here"},
		{"relative time", "Posted 5 minutes ago by me", "Posted yesterday by me"},
		{"session id", "link a1b2c3d4 here", "link 9f8e7d6c here"},
		{"case", "Some Title", "SOME TITLE"},
		{"Greek case", "οδος κοσμος λογος", "ΟΔΟΣ ΚΟΣΜΟΣ ΛΟΓΟΣ"},
		{"Cyrillic case", "Новости дня", "НОВОСТИ ДНЯ"},
		{"Turkish case", "ışık yılı", "IŞIK YILI"},
		{"marks", "one, two; three", "one two - three."},
		{"Japanese date", "最終更新日 2026年11月21日", "最終更新日 2025年3月1日"},
		{"Arabic digits", "صفحة ١٢٣", "صفحة ٤"},
		{"nothing", "", " 12 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Zero(t, of(tt.before).Changed(of(tt.after)))
			require.Zero(t, of(tt.before).distance(of(tt.after)))
		})
	}
}

// Some letters share their capital with another one: that of the micro sign is a Greek Mu.
func TestTheCaseOfEachLetterIsIgnored(t *testing.T) {
	for r := range rune(unicode.MaxRune) {
		if unicode.IsLetter(r) {
			require.Equal(t, of("a"+string(r)).Words, of("a"+string(unicode.ToUpper(r))).Words, "%U", r)
			require.Equal(t, of("a"+string(r)).Words, of("a"+string(unicode.ToLower(r))).Words, "%U", r)
		}
	}
}

func TestCompareSeesWords(t *testing.T) {
	for _, tt := range []struct{ name, before, after string }{
		{"other words", "The cat sat on the mat", "A dog ran through our garden"},
		{"one word", "sold", "free"},
		{"two words", "now open", "now closed"},
		{"order of two words", "dog man", "man dog"},
		{"text added to an empty page", "", "text"},
		{"Japanese", "明日は雨が降るでしょう", "昨日は雪が積もりました"},
		{"accent", "papa", "papá"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Greater(t, of(tt.before).Changed(of(tt.after)), 0.05)
		})
	}
	require.NotZero(t, of("ab c").Changed(of("a bc")))
	require.Equal(t, 1.0, of("some words").Changed(of("")), "a page that was emptied")
	require.Equal(t, 1.0, of("12").Changed(of("text")))
	require.Zero(t, of("日 本").Changed(of("日本")))
}

// TestMarksBelongToTheirLetters has vowel signs, tone marks and accents that are not letters.
func TestMarksBelongToTheirLetters(t *testing.T) {
	for _, tt := range [][2]string{
		{"आज का दिन बड़ा है", "आज का दान बड़ा है"},
		{"เขามีไก่", "เขามีไก"},
		{"pas de peche\u0301", "pas de peche\u0302"},
		{"מַלְכָּה", "מֶלֶךְ"},
	} {
		require.NotEqual(t, of(tt[0]).Words, of(tt[1]).Words, "%q", tt)
	}
	require.Equal(t, of("a b c"), of("a \u0301 b \u20e3\ufe0f c"), "marks alone are no words")
	require.Equal(t, of("ก่า"), of("ก่ า"))
}

// TestChangedIsTheShareOfNewWords replaces words of texts of several lengths. The mean of the
// estimates is the share, and single ones are where the documentation says.
func TestChangedIsTheShareOfNewWords(t *testing.T) {
	const texts = 400
	for _, tt := range []struct {
		words, replaced int
		within          [3]int // percent of the texts at or below 0.004, 0.02 and 0.05, as documented
	}{
		{30, 1, [3]int{2, 37, 83}},
		{300, 1, [3]int{70, 100, 100}},
		{300, 15, [3]int{0, 9, 60}},
		{1000, 1, [3]int{94, 100, 100}},
		{1000, 10, [3]int{24, 87, 100}},
		{1000, 50, [3]int{0, 8, 57}},
		{1000, 200, [3]int{0, 0, 0}},
	} {
		total, within := 0.0, [3]int{}
		for seed := range uint64(texts) {
			random := rand.New(rand.NewPCG(seed, 0))
			before := prose(random, tt.words)
			after := slices.Clone(before)
			for _, i := range random.Perm(tt.words)[:tt.replaced] {
				after[i] = prose(random, 1)[0] + "x"
			}
			changed := of(strings.Join(before, " ")).Changed(of(strings.Join(after, " ")))
			total += changed
			for i, limit := range []float64{0.004, 0.02, 0.05} {
				if changed <= limit {
					within[i]++
				}
			}
		}
		share := float64(tt.replaced) / float64(tt.words)
		require.InDelta(t, share, total/texts, 0.003+share/8, "%+v", tt)
		for i := range within {
			require.InDelta(t, tt.within[i], within[i]*100/texts, 4, "%+v: %v", tt, within)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	p, q := of(strings.Join(prose(random, 500), " ")), of(strings.Join(prose(random, 500), " "))
	require.Greater(t, p.Changed(q), 0.3, "unrelated texts")
}

// TestCountsAgreeWithASimpleSum compares the counts with ones that are added bit by bit.
func TestCountsAgreeWithASimpleSum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	var s sum
	var want [64]int
	for range 1000 {
		hash := random.Uint64()
		s.count(hash)
		for i := range want {
			want[i] += int(mix(hash) >> i & 1)
		}
	}
	for range 600 {
		s.count(42)
		for i := range want {
			want[i] += int(mix(42) >> i & 1)
		}
	}
	s.flush()
	require.Equal(t, want, s.counts)
}

func TestOfAllocatesNothing(t *testing.T) {
	text := []byte(strings.Join(prose(rand.New(rand.NewPCG(1, 0)), 100), " ") + " 日本 ÄÖ 12")
	require.Zero(t, testing.AllocsPerRun(10, func() { Of(text) }))
}

// FuzzOf asserts that ignored text may be anywhere between words.
func FuzzOf(f *testing.F) {
	f.Add([]byte("Some text, of May 2026"), []byte("日本語 x"))
	f.Add([]byte("\xff\xe6\x97"), []byte("\xa5"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		join := func(separator string) Print {
			return Of([]byte(string(a) + separator + string(b)))
		}
		plain := join(" ")
		for _, separator := range []string{", ", " 12:30 ", " -- MONDAY -- ", "\n\n"} {
			if got := join(separator); got != plain {
				t.Errorf("%q and %q: %+v with %q, but %+v", a, b, got, separator, plain)
			}
		}
		if plain.Changed(plain) != 0 {
			t.Errorf("%q differs from itself", a)
		}
	})
}

func BenchmarkOf(b *testing.B) {
	text := []byte(strings.Join(prose(rand.New(rand.NewPCG(1, 0)), 3000), " "))
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Of(text)
	}
}
