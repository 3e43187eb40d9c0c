package main

import (
	"regexp"
	"strings"
)

// A row is a question and its answers, with one figure for each %s in order.
type row struct {
	question string
	answers  string // ours | others
	figures  []figure
}

// A figure is the number that the group of a regular expression matches in a section of the report,
// multiplied by scale.
type figure struct {
	section string
	line    *regexp.Regexp
	scale   float64
}

// of returns a figure. A space in line matches any number of spaces.
func of(section, line string, scale float64) figure {
	line = strings.ReplaceAll(line, " ", ` +`)
	return figure{section, regexp.MustCompile(`(?m)^ *` + line), scale}
}

const (
	number = `([\d.]+)`
	other  = `\S+` // a column that the figure does not use

	micro = 1e-3 // of nanoseconds
)

// The titles of sections.
const (
	robots    = "robots: check, parse, look up"
	get       = "fetch: Get compared with baselines and peers"
	links     = "fetch: links compared with baselines and peers"
	exact     = "dedupe: exact set compared with B-tree and LSM"
	hosts     = "hostcache: ten million names"
	satstore  = "satstore: compared with B-tree, LSM and flat file"
	scheduler = "scheduler: cycles, memory and garbage collection"
	revisit   = "revisit: a visit"
	pagerank  = "pagerank: ten million pages"
	crawlers  = "fullcrawler: compared with other crawlers"
	messages  = "cluster: messages"
	sizes     = "all: dependencies and size of each package"
)

var rows = []row{
	{"May this URL be fetched, by a robots.txt with 124 rules?", "%s µs | temoto/robotstxt %s µs", []figure{
		robotsCheck("shop", "own"), robotsCheck("shop", "temoto"),
	}},
	{"Get a page of 20 KB: CPU time as a multiple of net/http's", "%s | resty %s, colly %s; fasthttp, not on net/http, %s",
		[]figure{getCost("fetch"), getCost("resty"), getCost("colly"), getCost("fasthttp")}},
	{"Find the links of generated pages, MB per CPU second", "%s | goquery %s; x/net/html's tokenizer alone, without links, %s",
		[]figure{linkSpeed("page.Links"), linkSpeed("goquery"), linkSpeed("tokenizer loop")}},
	{"Was this URL seen? Exact, on disk, nine of ten known", "%s µs | pebble %s µs, bbolt %s µs", []figure{
		of(exact, `exact \d+ `+number, micro), of(exact, `pebble \d+ `+number, micro), of(exact, `bbolt \d+ `+number, micro),
	}},
	{"Ten million hosts in memory: size of one, garbage collection, lookup",
		"%s B, %s ms, %s µs | Go map %s B, %s ms, %s µs", []figure{
			hostColumn("trie", 0, 1), hostColumn("trie", 6, 1), hostColumn("trie", 3, micro),
			hostColumn("map", 0, 1), hostColumn("map", 6, 1), hostColumn("map", 3, micro),
		}},
	{"Read and update the record of one page in five million", "%s µs | pebble %s µs by time, %s µs by id; bbolt %s µs",
		[]figure{storeTime("sat"), storeTime("pebble-time"), storeTime("pebble-id"), storeTime("bolt")}},
	{"Next URL among a million hosts, one thread", "%s µs in order of arrival, %s µs in random order | –", []figure{
		of(scheduler, `BenchmarkCycle/order=added/hosts=1000000-\d+\s+\d+\s+`+number, micro),
		of(scheduler, `BenchmarkCycle/order=random/hosts=1000000-\d+\s+\d+\s+`+number, micro),
	}},
	{"Ten million pages in the order of PageRank, pages per CPU second", "%s million; %s million with the cutoff DL1 | –",
		[]figure{pageSpeed("Push"), pageSpeed("DL1")}},
	{"A whole crawl without politeness, pages per second",
		"%s; %s with a gzip archive | colly %s; wget %s and wget2 %s, which keep files", []figure{
			crawlSpeed("fullcrawler without archive"), crawlSpeed("fullcrawler with gzip"),
			crawlSpeed("colly"), crawlSpeed("wget"), crawlSpeed("wget2"),
		}},
}

func robotsCheck(file, engine string) figure { return robotsTime("Match", file, engine, micro) }

func robotsTime(benchmark, file, engine string, scale float64) figure {
	return of(robots, `Benchmark`+benchmark+`/file=`+file+`/engine=`+engine+`-\d+\s+\d+\s+`+number+` ns/op`, scale)
}

func getCost(engine string) figure {
	return of(get, engine+` `+other+` `+other+` `+number, 1)
}

func linkSpeed(engine string) figure { return of(links, engine+` `+number, 1) }

func hostColumn(structure string, skip int, scale float64) figure {
	return of(hosts, structure+strings.Repeat(` `+other, skip)+` `+number, scale)
}

func storeTime(engine string) figure {
	return of(satstore, `\| `+engine+` \|`+strings.Repeat(` `+other+` \|`, 4)+` `+number, 1)
}

func pageSpeed(strategy string) figure {
	return of(pagerank, `BenchmarkStream/pages=10000000/strategy=`+strategy+`-.*\s`+number+` Mpages/cpu-s\s`, 1)
}

func crawlSpeed(crawler string) figure {
	return of(crawlers, crawler+` `+other+` `+number, 1)
}
