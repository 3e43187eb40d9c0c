package hostcache_test

import (
	"bufio"
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A nameList holds names without a pointer to each, so that the collector has nothing to do with it
// and what is measured is the structure that the names are put into.
type nameList struct {
	text string
	ends []uint32
}

func (l nameList) len() int { return len(l.ends) }

func (l nameList) at(i int) string {
	begin := uint32(0)
	if i > 0 {
		begin = l.ends[i-1]
	}
	return l.text[begin:l.ends[i]]
}

// mapped returns a list of what f makes of the names in some order. They lie in memory in that
// order, so that who goes through them waits for what he does with them and not for themselves.
func (l nameList) mapped(order []uint32, f func(string) string) nameList {
	var text strings.Builder
	text.Grow(len(l.text) + len(l.text)/8)
	ends := make([]uint32, len(order))
	for i, from := range order {
		text.WriteString(f(l.at(int(from))))
		ends[i] = uint32(text.Len())
	}
	return nameList{text.String(), ends}
}

// permutation returns the numbers below n in random order.
func permutation(n int, seed uint64) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(n, func(i, j int) {
		order[i], order[j] = order[j], order[i]
	})
	return order
}

// reversed puts the labels of a name in reverse order.
func reversed(name string) string {
	labels := strings.Split(name, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".")
}

// hostNames returns n different host names in no particular order: real ones, and beyond those ones
// that are made up from them, half of one name's first label and half of another's.
func hostNames(tb testing.TB, n int) nameList {
	tb.Helper()
	known := realNames(tb, n)
	if len(known) == 0 {
		tb.Log("no hosts.txt.zst, so the names are made up: set SPINNERET_DATA to its directory")
		known = plausibleNames(min(n, 100_000))
	}
	met := make([]uint64, n) // a bit for each hash: some names are taken for old ones and left out
	seed := fnv.New64a()
	isNew := func(name []byte) bool {
		seed.Reset()
		seed.Write(name)
		bit := seed.Sum64() % uint64(64*n)
		old := met[bit/64] >> (bit % 64) & 1
		met[bit/64] |= 1 << (bit % 64)
		return old == 0
	}
	var text strings.Builder
	text.Grow(n * 22)
	ends := make([]uint32, 0, n)
	take := func(name []byte) {
		if isNew(name) {
			text.Write(name)
			ends = append(ends, uint32(text.Len()))
		}
	}
	for _, name := range known {
		take([]byte(name))
	}
	r := rand.New(rand.NewPCG(1, 2))
	var name []byte
	for len(ends) < n {
		a, b := known[r.IntN(len(known))], known[r.IntN(len(known))]
		labelA, rest, _ := strings.Cut(a, ".")
		labelB, _, _ := strings.Cut(b, ".")
		name = append(name[:0], labelA[:(len(labelA)+1)/2]...)
		name = append(name, labelB[len(labelB)/2:]...)
		take(append(append(name, '.'), rest...))
	}
	return nameList{text.String(), ends}
}

// realNames returns at most n names of the list, evenly spread over it; none if it is not there.
func realNames(tb testing.TB, n int) []string {
	dir := cmp.Or(os.Getenv("SPINNERET_DATA"), filepath.Join("..", "..", "shared", "data"))
	f, err := os.Open(filepath.Join(dir, "hosts.txt.zst"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	defer z.Close()
	var all []string
	for lines := bufio.NewScanner(z); lines.Scan(); {
		all = append(all, lines.Text())
	}
	r := rand.New(rand.NewPCG(3, 4))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

func plausibleNames(n int) []string {
	syllables := strings.Fields("ba co du fe gi ho ju ka lo mi nu pa re si to vu wa xe yo zi shop web")
	zones := strings.Fields("com com com com net org de ru cn info io blogspot.com co.uk")
	r := rand.New(rand.NewPCG(5, 6))
	all := make([]string, n)
	for i := range all {
		label := ""
		for range 2 + r.IntN(4) {
			label += syllables[r.IntN(len(syllables))]
		}
		all[i] = fmt.Sprintf("%s%d.%s", label, i, zones[r.IntN(len(zones))])
	}
	return all
}
