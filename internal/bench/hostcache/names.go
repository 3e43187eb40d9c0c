package main

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

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

// hostNames returns n different host names in no particular order: those of the file, and beyond
// those ones that are made up from them, half of one name's first label and half of another's.
func hostNames(file string, n int) (nameList, error) {
	known, err := readNames(file, n)
	if err != nil {
		return nameList{}, err
	}
	met := make([]uint64, n) // a bit for each hash: some names are taken for old ones and left out
	hash := fnv.New64a()
	var text strings.Builder
	text.Grow(n * 22)
	ends := make([]uint32, 0, n)
	take := func(name []byte) {
		hash.Reset()
		hash.Write(name)
		bit := hash.Sum64() % uint64(64*n)
		if met[bit/64]>>(bit%64)&1 == 0 {
			met[bit/64] |= 1 << (bit % 64)
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
	return nameList{text.String(), ends}, nil
}

// readNames returns at most n names of a file that has one a line, evenly spread over it.
func readNames(file string, n int) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("host names: %w (give the file with -hosts)", err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	var all []string
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		all = append(all, lines.Text())
	}
	r := rand.New(rand.NewPCG(3, 4))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))], lines.Err()
}
