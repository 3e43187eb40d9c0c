package main

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

const scaleName = "docs/scale.md"

//go:embed scale.md.tmpl
var scalePage string

// What no measurement here says: properties of the web, and wishes of an operator.
const (
	perPage  = 3    // known URLs per page that is fetched
	perHost  = 100  // known URLs per host
	newLinks = 40   // links of a page that the caches do not know
	wire     = 30e3 // bytes of a page on the wire, and in the archive
	days     = 30   // until all pages were visited again
	delay    = 5    // seconds between two requests to a host
	together = 2000 // pages per second of a cluster
)

// A cost is a figure of the report that the size of a crawl multiplies.
type cost struct {
	to *float64
	of figure
}

// A crawl is a size, and what the report says about it.
type crawl struct {
	URLs float64

	RecordDisk, VisitRead, VisitWritten float64 // satstore: bytes
	Sighting                            float64 // dedupe/exact: microseconds of CPU
	Queue, Facts, Names                 float64 // scheduler, hostcache, resolve: bytes per host
	PageCPU                             float64 // fullcrawler with a gzip archive: milliseconds of CPU
	Messages                            float64 // three brokers, per second
	FirstKnown, First, LastKnown, Last  float64 // fullcrawler: known URLs, and resident bytes
}

// costs are in the order of the fields.
func (c *crawl) costs() []cost {
	known := "fullcrawler: memory, ten million known URLs"
	return []cost{
		{&c.RecordDisk, of(satstore, `\| sat (?:\|[^|]*){11}\| `+number, 1)},
		{&c.VisitRead, of(satstore, `\| sat (?:\|[^|]*){8}\| `+number, 1)},
		{&c.VisitWritten, of(satstore, `\| sat (?:\|[^|]*){9}\| `+number, 1)},
		{&c.Sighting, of(exact, `exact \d+ \d+ `+number, micro)},
		{&c.Queue, memory("B/host")},
		{&c.Facts, of(hosts, `cache `+number, 1)},
		{&c.Names, of("hostcache/resolve: compared with package net", `BenchmarkMemory.*\s`+number+` B/name`, 1)},
		{&c.PageCPU, of(crawlers, `fullcrawler with gzip `+number, 1)},
		{&c.Messages, of("cluster: three brokers", `3 \d+ \d+ \d+ \d+ `+other+` `+number, 1)},
		{&c.FirstKnown, of(known, `known visited.*\n\s+`+number, 1)},
		{&c.First, of(known, `known visited.*\n\s+\d+ \d+ `+number, 1e6)},
		{&c.LastKnown, of(known, `known visited(?:.*\n)+\s+`+number+`.*\n+`+"```", 1)},
		{&c.Last, of(known, `known visited(?:.*\n)+\s+\d+ \d+ `+number+`.*\n+`+"```", 1e6)},
	}
}

func (c crawl) KnownMemory() float64 { return (c.Last - c.First) / (c.LastKnown - c.FirstKnown) }
func (c crawl) BaseMemory() float64  { return c.First - c.KnownMemory()*c.FirstKnown }
func (c crawl) HostMemory() float64  { return c.Queue + c.Facts + c.Names }
func (c crawl) Memory() float64 {
	return c.BaseMemory() + c.URLs*(c.KnownMemory()+c.HostMemory()/perHost)
}
func (c crawl) Pages() float64       { return c.URLs / perPage }
func (c crawl) Store() float64       { return c.RecordDisk * c.URLs }
func (c crawl) Archive() float64     { return wire * c.Pages() }
func (c crawl) Rate() float64        { return c.Pages() / (days * 86400) }
func (c crawl) Bits() float64        { return 8 * wire * c.Rate() }
func (c crawl) Cores() float64       { return c.PageCPU / 1e3 * c.Rate() }
func (c crawl) LinkCores() float64   { return newLinks * c.Sighting / 1e6 * c.Rate() }
func (c crawl) VisitBytes() float64  { return c.VisitRead + c.VisitWritten }
func (c crawl) StoreIO() float64     { return c.VisitBytes() * c.Rate() }
func (c crawl) HostMinutes() float64 { return delay / 60. * perHost / perPage }
func (c crawl) ClusterDays() float64 { return c.Pages() / together / 86400 }
func (c crawl) BrokerShare() float64 { return 1.2 * together / c.Messages * 100 }

// makeScale returns the page about large crawls.
func makeScale(sections map[string]string) (string, error) {
	var measured crawl
	for _, cost := range measured.costs() {
		value, err := cost.of.in(sections)
		if err != nil {
			return "", fmt.Errorf("%s: section %q: %w", reportName, cost.of.section, err)
		}
		*cost.to = value
	}
	var sizes []crawl
	for _, urls := range []float64{1e8, 1e9, 1e10} {
		measured.URLs = urls
		sizes = append(sizes, measured)
	}
	t, err := template.New("").Funcs(template.FuncMap{"short": short, "unit": unit}).Parse(scalePage)
	if err != nil {
		return "", err
	}
	var page strings.Builder
	err = t.Execute(&page, map[string]any{"C": measured, "Sizes": sizes, "PerPage": perPage, "PerHost": perHost,
		"Links": newLinks, "Wire": wire, "Days": days, "Delay": delay, "Together": together})
	return page.String(), err
}

func short(value float64) string { return format(value, 2) }

func unit(value float64, name string) string {
	for _, prefix := range []string{"", "k", "M", "G"} {
		if value < 1000 {
			return short(value) + " " + prefix + name
		}
		value /= 1000
	}
	return short(value) + " T" + name
}
