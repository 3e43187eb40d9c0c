// Command data generates small data for the tests, laboratories and benchmarks that read the
// directory named by the environment variable SPINNERET_DATA:
//
//	go run ./data -o /tmp/data
//	export SPINNERET_DATA=/tmp/data
//
// The data is random, but always the same. It is enough to check that everything works. Meaningful
// figures need real data in the same formats, which the READMEs of the laboratories describe.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

func main() {
	dir := flag.String("o", "", "`directory` to create")
	hosts := flag.Int("hosts", 1000, "number of hosts; a graph has 20 pages of each")
	flag.Parse()
	if err := run(*dir, *hosts); err != nil {
		fmt.Fprintln(os.Stderr, "data:", err)
		os.Exit(1)
	}
}

const pagesPerHost = 20

func run(dir string, hosts int) error {
	if dir == "" || hosts < 1 {
		return errors.New("want -o with a directory to create, and -hosts of at least 1")
	}
	files := map[string]func(w io.Writer, random *rand.Rand){
		"hosts.txt.zst": func(w io.Writer, _ *rand.Rand) {
			for h := range hosts {
				fmt.Fprintln(w, hostName(h))
			}
		},
		"urls-scoop.txt.zst": func(w io.Writer, _ *rand.Rand) {
			for p := range hosts * pagesPerHost {
				fmt.Fprintln(w, pageURL(p))
			}
		},
		"changes/synthetic.tsv.zst":        func(w io.Writer, r *rand.Rand) { writeChanges(w, r, hosts) },
		"graphs/cnr-2000/edges.tsv.zst":    func(w io.Writer, r *rand.Rand) { writeEdges(w, r, hosts) },
		"graphs/hollins/edges.hollins.dat": func(w io.Writer, r *rand.Rand) { writeEdges(w, r, hosts) },
	}
	for _, graph := range []string{"uci-ics", "debian-docs"} {
		base := "graphs/" + graph + "/" + graph
		files[base+".edges.tsv.zst"] = func(w io.Writer, r *rand.Rand) { writeEdges(w, r, hosts) }
		files[base+".nodes.tsv.zst"] = func(w io.Writer, _ *rand.Rand) {
			for p := range hosts * pagesPerHost {
				fmt.Fprintf(w, "%d\t1\t%s\n", p, pageURL(p))
			}
		}
	}
	for name, write := range files {
		if err := create(filepath.Join(dir, filepath.FromSlash(name)), write); err != nil {
			return err
		}
	}
	return nil
}

func hostName(h int) string { return fmt.Sprintf("h%05d.zone%02d.example", h, h%50) }

func pageURL(p int) string {
	return fmt.Sprintf("http://%s/page/%d", hostName(p/pagesPerHost), p%pagesPerHost)
}

// writeEdges links each page to its host's first pages and to others, early ones more often.
func writeEdges(w io.Writer, random *rand.Rand, hosts int) {
	pages := hosts * pagesPerHost
	for p := range pages {
		first := p - p%pagesPerHost
		for _, to := range []int{first, first + random.IntN(pagesPerHost), (p + 1) % pages} {
			fmt.Fprintf(w, "%d\t%d\n", p, to)
		}
		share := random.Float64()
		fmt.Fprintf(w, "%d\t%d\n", p, int(share*share*float64(pages)))
	}
}

// writeChanges changes each page at random over three years, at its own rate.
func writeChanges(w io.Writer, random *rand.Rand, pages int) {
	const begin, days = 1_600_000_000, 3 * 365
	for p := range pages {
		mean := 1 + 200*random.Float64()*random.Float64() // days
		fmt.Fprintf(w, "%s\t%d\tA\n", pageURL(p), begin)
		for at := random.ExpFloat64() * mean; at < days; at += random.ExpFloat64() * mean {
			fmt.Fprintf(w, "%s\t%d\tM\n", pageURL(p), begin+int(at*86400))
		}
	}
}

// create writes a file, which is compressed if its name ends in .zst.
func create(name string, write func(io.Writer, *rand.Rand)) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	random := rand.New(rand.NewPCG(1, 2))
	if filepath.Ext(name) != ".zst" {
		w := bufio.NewWriter(f) // keeps the first error
		write(w, random)
		return w.Flush()
	}
	z, err := zstd.NewWriter(f)
	if err != nil {
		return err
	}
	write(z, random)
	return z.Close()
}
