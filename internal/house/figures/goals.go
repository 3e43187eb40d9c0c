package main

import (
	"fmt"
	"strings"
)

// A goal is a bound on a figure, or on the ratio of two. The limit is shown if the goal is missed.
type goal struct {
	what    string
	figures []figure // one, or two: the first is divided by the second
	atMost  bool     // otherwise at least
	bound   float64
	limit   string
}

const goalsAbout = `# Goals

Each goal, with the figure from [REPORT.md](REPORT.md). ` + "`go run ./internal/house/figures`" + ` in the root of the
repository writes this page. The machine was shared: a goal that is missed by a few percent may be met in
another run.

| | goal | measured | limiting factor, if missed |
| --- | --- | ---: | --- |
`

// makeGoals returns the page that compares the report with the goals.
func makeGoals(sections map[string]string) (string, error) {
	var page strings.Builder
	page.WriteString(goalsAbout)
	for _, g := range goals {
		value, err := g.figures[0].in(sections)
		if err == nil && len(g.figures) == 2 {
			var divisor float64
			divisor, err = g.figures[1].in(sections)
			value /= divisor
		}
		if err != nil {
			return "", fmt.Errorf("%s: goal %q: %w", reportName, g.what, err)
		}
		sign, missed := "≥", value < g.bound
		if g.atMost {
			sign, missed = "≤", value > g.bound
		}
		limit := ""
		if missed {
			limit = "**missed:** " + g.limit
		}
		fmt.Fprintf(&page, "| %s | %s %s | %s | %s |\n", g.what, sign, format(g.bound, 3), format(value, 3), limit)
	}
	return page.String(), nil
}

const (
	writing = "archive: append and read"
	graphs  = "pagerank: real graphs and a generated one"
	nodes   = "cluster: three brokers"

	opening   = "the disk, and the cost of opening and closing an archive of 400 pages: 97 % of Append is compressing, hashing and writing"
	inflating = "inflating and hashing, which also take 99 % of the reader's time"
)

var goals = []goal{
	{"scheduler: cycles per second, a million hosts in order of arrival", []figure{cycles(1e6)}, false, 1.5e6,
		"cache misses; a million hosts take 60 MB"},
	{"scheduler: cycles per second, ten million hosts", []figure{cycles(1e7)}, false, 6e5, "cache misses"},
	{"scheduler: bytes per host", []figure{memory("B/host")}, true, 64, "the fields of a host"},
	{"scheduler: bytes per task", []figure{memory("B/task")}, true, 32, "the fields of a task"},
	{"scheduler: CPU time to mark a million hosts and ten million tasks, ms",
		[]figure{of(scheduler, `BenchmarkCollector.* `+number+` ms/mark`, 1)}, true, 2,
		"other processes: the runtime measures elapsed time; on an idle machine it is 0.9 to 1.7"},
	{"robots: check, 29 rules, µs", []figure{robotsCheck("typical", "own")}, true, 0.25, "the number of wildcards"},
	{"robots: check, 124 rules, times as fast as temoto/robotstxt",
		[]figure{robotsCheck("shop", "temoto"), robotsCheck("shop", "own")}, false, 15, "the number of wildcards"},
	{"robots: check, hostile file, µs", []figure{robotsCheck("hostile", "own")}, true, 400, "25,000 wildcards"},
	{"robots: parse, hostile file, ms", []figure{robotsTime("Parse", "hostile", "own", 1e-6)}, true, 6,
		"the compilation of 25,000 wildcards; such files are rare, and are parsed once a day"},
	{"fetch: CPU time of Get as a multiple of net/http's", []figure{getCost("fetch")}, true, 1.25,
		"the timers and buffers that the limits need"},
	{"fetch: links, times as fast as x/net/html's tokenizer", []figure{linkSpeed("page.Links"), linkSpeed("tokenizer loop")},
		false, 2, "decoding and resolving the URLs"},
	{"dedupe/exact: sightings per second", []figure{of(exact, `exact `+number, 1)}, false, 5e5, "the disk"},
	{"dedupe/exact: times as fast as bbolt", []figure{exactTime("bbolt"), exactTime("exact")}, false, 10, "the disk"},
	{"dedupe/exact: times as fast as pebble", []figure{exactTime("pebble"), exactTime("exact")}, false, 5,
		"the wait for the disk, which is shared; the ratio of CPU times is higher"},
	{"hostcache/hattrie: bytes per entry beyond key and value", []figure{hostColumn("trie", 7, 1)}, true, 1,
		"the headers of the leaves"},
	{"hostcache/hattrie: a hit as a multiple of a Go map's", []figure{hostColumn("trie", 3, 1), hostColumn("map", 3, 1)}, true, 2,
		"the price of the small size: a search in a packed leaf, after two or three cache misses"},
	{"hostcache/hattrie: a miss as a multiple of a Go map's", []figure{hostColumn("trie", 4, 1), hostColumn("map", 4, 1)}, true, 2.3,
		"as for a hit"},
	{"hostcache/hattrie: a put as a multiple of a Go map's", []figure{hostColumn("trie", 2, 1), hostColumn("map", 2, 1)}, true, 1.6,
		"splits of full leaves"},
	{"satstore: µs per record", []figure{storeTime("sat")}, true, 0.6, "the disk, which is shared"},
	{"satstore: times as fast as bbolt with sorted batches", []figure{storeTime("bolt"), storeTime("sat")}, false, 150, "the disk"},
	{"satstore: times as fast as pebble by id", []figure{storeTime("pebble-id"), storeTime("sat")}, false, 80, "the disk"},
	{"satstore: times as fast as pebble by time", []figure{storeTime("pebble-time"), storeTime("sat")}, false, 10, "the disk"},
	{"pagerank: DL1 as a share of breadth-first's speed, cnr-2000", []figure{graphSpeed("cnr-2000", "DL1"), graphSpeed("cnr-2000", "BF")},
		false, 0.6, "cache misses"},
	{"pagerank: the same, uci-ics", []figure{graphSpeed("uci-ics", "DL1"), graphSpeed("uci-ics", "BF")}, false, 0.6, "cache misses"},
	{"pagerank: the same, debian-docs", []figure{graphSpeed("debian-docs", "DL1"), graphSpeed("debian-docs", "BF")}, false, 0.6,
		"cache misses"},
	{"pagerank: the same, a generated graph", []figure{graphSpeed("generated", "DL1"), graphSpeed("generated", "BF")}, false, 0.6,
		"the graph is numbered in breadth-first order, so breadth-first reads it sequentially and DL1 at random"},
	{"pagerank: million pages per CPU second, DL1, ten million pages", []figure{pageSpeed("DL1")}, false, 2,
		"misses of the cache and of the TLB: huge pages would give 17 % here, and nothing elsewhere"},
	{"archive: append with gzip, as a share of compressing and hashing alone", []figure{writeSpeed("append gzip"),
		writeSpeed("bare, two digests gzip")}, false, 0.95,
		opening},
	{"archive: append with zstd, likewise", []figure{writeSpeed("append zstd"), writeSpeed("bare, two digests zstd")}, false, 0.9,
		opening},
	{"archive: read with gzip, as a share of decompressing alone", []figure{readSpeed("reader gzip"), readSpeed("bare gzip")}, false, 0.9,
		inflating},
	{"archive: read with zstd, likewise", []figure{readSpeed("reader zstd"), readSpeed("bare zstd")}, false, 0.9, inflating},
	{"fullcrawler: CPU seconds per 1,000 pages, no archive", []figure{crawlCost("fullcrawler without archive")}, true, 0.085,
		"net/http and the system's network stack; the figure varies with the load of the shared machine"},
	{"fullcrawler: CPU seconds per 1,000 pages, gzip", []figure{crawlCost("fullcrawler with gzip")}, true, 0.25,
		"the compressor takes 59 % at level 6, the two digests 8 %; with -level 1, 0.74 of the time for 5 % more bytes"},
	{"fullcrawler: CPU seconds per 1,000 pages, zstd", []figure{crawlCost("fullcrawler with zstd")}, true, 0.22,
		"the compressor takes 43 % at its fastest level, the two digests 9 %, the crawl itself 30 %"},
	{"cluster: messages per second, one broker", []figure{of(messages, `1 \d+ \d+ \d+ \d+ `+other+` `+number, 1)}, false, 1e5,
		"the broker"},
	{"cluster: messages per second, three brokers", []figure{of(nodes, `3 \d+ \d+ \d+ \d+ `+other+` `+number, 1)}, false, 2e4,
		"the broker"},
}

func cycles(hosts int) figure {
	return of(scheduler, fmt.Sprintf(`BenchmarkCycle/order=added/hosts=%d-.* %s leases/s`, hosts, number), 1)
}

func memory(unit string) figure { return of(scheduler, `BenchmarkMemory.*\s`+number+` `+unit, 1) }

func exactTime(store string) figure { return of(exact, store+` \d+ `+number, 1) }

func graphSpeed(graph, strategy string) figure {
	return of(graphs, `BenchmarkCrawl/graph=`+graph+`/strategy=`+strategy+`-\d+\s.*\s`+number+` Mpages/cpu-s\s`, 1)
}

// writeSpeed is in MB per second.
func writeSpeed(subject string) figure { return archiveSpeed("write", subject) }

func readSpeed(subject string) figure { return archiveSpeed("read", subject) }

func archiveSpeed(what, subject string) figure {
	return of(writing, what+` `+subject+` `+number+` MB/s `+other+` `+other+` MB/CPU-s`, 1)
}

func crawlCost(crawler string) figure { return of(crawlers, crawler+` `+number, 1) }
