package main

// A step is one command. $SPINNERET_DATA in its arguments is replaced when it runs.
type step struct {
	pkg, what   string
	dir         string // relative to this one
	long, short []string
}

func goTest(flags ...string) []string { return append([]string{"test", "-run", "^$"}, flags...) }

func goRun(args ...string) []string { return append([]string{"run"}, args...) }

// bench returns a step for the benchmarks of a package.
func bench(pkg, what, pattern string) step {
	return step{pkg: pkg, what: what, dir: "../..", long: goTest("-bench", pattern, "-count", "3", "./"+pkg),
		short: goTest("-bench", pattern, "-benchtime", "1x", "-short", "./"+pkg)}
}

// hostNames is external data.
const hostNames = "$SPINNERET_DATA/hosts.txt.zst"

var steps = []step{
	{"scheduler", "cycles, memory and garbage collection", "../..", goTest("-bench", ".", "-benchtime", "500ms", "./scheduler"),
		goTest("-bench", ".", "-benchtime", "1x", "-short", "./scheduler")},
	{"robots", "check, parse, look up", "../..", goTest("-bench", ".", "-count", "3", "./robots/..."),
		goTest("-bench", ".", "-benchtime", "1x", "-short", "./robots/...")},
	{"fetch", "Get compared with baselines and peers", ".", goRun("./fetch", "-pages", "10000", "get"),
		goRun("./fetch", "-rounds", "1", "-pages", "2000", "get")},
	{"fetch", "links compared with baselines and peers", ".", goRun("./fetch", "links"), goRun("./fetch", "-rounds", "1", "links")},
	bench("dedupe", "canonical form and filter", "."),
	{"dedupe", "exact set compared with B-tree and LSM", ".", goRun("./dedupe", "-urls", "1e6", "-sightings", "1e7"),
		goRun("./dedupe", "-urls", "1e4", "-sightings", "1e5")},
	{"hostcache", "one million names", ".", goRun("./hostcache", "-hosts", hostNames, "-n", "1000000", "-rounds", "3"),
		goRun("./hostcache", "-hosts", hostNames, "-n", "20000", "-rounds", "1")},
	{"hostcache", "ten million names", ".", goRun("./hostcache", "-hosts", hostNames, "-n", "10000000", "-rounds", "1", "-structures", "map,trie,cache"), nil},
	bench("hostcache/resolve", "compared with package net", "."),
	bench("revisit", "a visit", "."),
	{"satstore", "compared with B-tree, LSM and flat file", ".",
		goRun("./satstore", "-records", "5e6", "-units", "64", "-limit", "30s", "-engines", "sat,sat-detached,flat,bolt,pebble-id,pebble-time"),
		goRun("./satstore", "-records", "2e4", "-engines", "sat,sat-detached,bolt,pebble-time")},
	bench("pagerank", "the frontier", "."),
	{"pagerank", "real graphs and a generated one", ".", goTest("-bench", "Crawl|Memory", "-benchtime", "1x", "./pagerank"),
		goTest("-bench", "Memory", "-benchtime", "1x", "./pagerank")},
	{"pagerank", "ten million pages", ".", goTest("-bench", "Stream", "-benchtime", "1x", "./pagerank"), nil},
	{"archive", "append and read", ".", goRun("./archive", "-rounds", "3", "write", "read"),
		goRun("./archive", "-pages", "200", "-rounds", "1", "write", "read")},
	{"fullcrawler", "compared with other crawlers", ".", goRun("./crawl", "-pages", "300", "-limit", "40s"), goRun("./crawl", "-rounds", "1", "-hosts", "10", "-pages", "20")},
	{"fullcrawler", "politeness, compared with other crawlers", ".", goRun("./certify"), goRun("./certify", "-only", "fullcrawler")},
	{"fullcrawler", "soak test", ".", goRun("./soak", "-visits", "5e5", "-every", "5s"), goRun("./soak", "-visits", "1.2e4", "-pages", "10", "-every", "5s")},
	{"fullcrawler", "memory, ten million known URLs", ".", goRun("./memory", "-urls", "1e7"), goRun("./memory", "-urls", "2e4")},
	{"cluster", "messages", ".", goRun("./cluster", "messages", "-rounds", "3"),
		goRun("./cluster", "messages", "-rounds", "1", "-messages", "20000")},
	{"cluster", "three brokers", ".", goRun("./cluster", "messages", "-brokers", "3", "-messages", "1000000"), nil},
	{"cluster", "1 to 8 processes", ".", goRun("./cluster", "scaling"), nil},
	{"all", "dependencies and size of each package", ".", goRun("./sizes"), goRun("./sizes")},
}
