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

// A nameList stores names without pointers, so that the garbage collector does not scan it and only
// the structure under test is measured.
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

// shuffled returns a list of the results of f for the names in random order. They are in memory in that
// order, so iterating over them causes no cache misses of its own.
func (l nameList) shuffled(seed uint64, f func(string) string) nameList {
	var text strings.Builder
	text.Grow(len(l.text) + len(l.text)/8)
	ends := make([]uint32, l.len())
	for i, from := range rand.New(rand.NewPCG(seed, 0)).Perm(l.len()) {
		text.WriteString(f(l.at(from)))
		ends[i] = uint32(text.Len())
	}
	return nameList{text.String(), ends}
}

// reversed reverses the order of a name's labels.
func reversed(name string) string {
	labels := strings.Split(name, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".")
}

// hostNames returns n distinct host names in random order: those of the file, and if they are too
// few, names that combine halves of the first labels of two of them.
func hostNames(file string, n int) (nameList, error) {
	known, err := readNames(file, n)
	if err != nil {
		return nameList{}, err
	}
	met := make([]uint64, n) // a bit for each hash: names with equal hashes are omitted
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

// readNames returns at most n names of a file with one per line, spread evenly over it.
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
