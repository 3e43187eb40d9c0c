package cockpit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spinneret-go/spinneret/examples/internal/stage"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
)

// FiltersName is the file with the filters that were active when the pages were found.
const FiltersName = "filters"

// Filters determine which links are followed. A crawl stores them: when they get wider, excluded
// links must be checked again.
type Filters struct {
	Scope      urlfilter.Reach `json:"scope"`
	Depth      int             `json:"depth"`
	HostPages  int             `json:"hostPages"`
	Include    []string        `json:"include,omitempty"`
	Exclude    []string        `json:"exclude,omitempty"`
	Deny       []string        `json:"deny,omitempty"`   // the lines of the list
	Erased     []string        `json:"erased,omitempty"` // likewise
	Hosts      []string        `json:"hosts,omitempty"`  // lines of the overrides
	Resources  bool            `json:"resources,omitempty"`
	Sitemaps   bool            `json:"sitemaps,omitempty"`
	AnyAddress bool            `json:"anyAddress,omitempty"`
	AsFound    bool            `json:"asFound,omitempty"`
}

// Filters returns the filters of a configuration.
func (c *Config) Filters() Filters {
	text := func(patterns []*regexp.Regexp) (texts []string) {
		for _, p := range patterns {
			texts = append(texts, p.String())
		}
		return texts
	}
	return Filters{
		Scope: c.Reach, Depth: c.Filter.MaxDepth, HostPages: c.HostPages,
		Include: text(c.Filter.Include), Exclude: text(c.Filter.Exclude), Deny: c.denyLines, Erased: c.erasedLines, Hosts: c.Overrides.Lines(),
		Resources: c.Resources, Sitemaps: c.Sitemaps, AnyAddress: c.Filter.Format.AnySuffix,
		AsFound: c.AsFound,
	}
}

// Wider reports whether f lets anything pass that old did not.
func (f Filters) Wider(old Filters) bool {
	return f.widerBesideLists(old) || len(f.lifted(old)) > 0
}

// lifted returns the lines that denied something and no longer do, as a deny list. An exception that is
// new counts as such a line.
func (f Filters) lifted(old Filters) (lines []string) {
	now, before := setOf(f.Deny, f.Erased), setOf(old.Deny) // lists of hosts have a million lines
	for _, line := range slices.Concat(old.Deny, old.Erased) {
		if line[0] != '+' && !now[line] {
			lines = append(lines, line)
		}
	}
	for _, line := range f.Deny {
		if line[0] == '+' && !before[line] {
			lines = append(lines, strings.TrimSpace(line[1:]))
		}
	}
	return lines
}

// setOf returns the lines of some lists.
func setOf(lists ...[]string) map[string]bool {
	set := map[string]bool{}
	for _, line := range slices.Concat(lists...) {
		set[line] = true
	}
	return set
}

// barred returns the bits of lifted lines in stage.State.Barred. Which lines a new exception overrides
// is not known, so it has all bits.
func (f Filters) barred(old Filters) (bits uint64) {
	before := setOf(old.Deny, old.Erased)
	for _, line := range f.lifted(old) {
		if !before[line] {
			return math.MaxUint64
		}
		bits |= stage.BarredBy(line)
	}
	return bits
}

// widerBesideLists is Wider for everything but the deny lists.
func (f Filters) widerBesideLists(old Filters) bool {
	atMost := func(limit, before int) bool { // 0 and less are no limit
		return before <= 0 || limit > 0 && limit <= before
	}
	lost := func(before, now []string) bool {
		return slices.ContainsFunc(before, func(rule string) bool { return !slices.Contains(now, rule) })
	}
	reaches := []urlfilter.Reach{urlfilter.Page, urlfilter.Prefix, urlfilter.Host, urlfilter.Domain, urlfilter.Any}
	depth, before := f.Depth+1, old.Depth+1 // 0 and less are no limit
	return slices.Index(reaches, f.Scope) > slices.Index(reaches, old.Scope) ||
		!atMost(depth, before) || !atMost(f.HostPages, old.HostPages) ||
		len(old.Include) > 0 && (len(f.Include) == 0 || lost(f.Include, old.Include)) ||
		lost(old.Exclude, f.Exclude) || f.widerOverrides(old, atMost) ||
		f.Resources && !old.Resources || f.Sitemaps && !old.Sitemaps || f.AnyAddress && !old.AnyAddress ||
		f.AsFound && !old.AsFound ||
		slices.ContainsFunc(old.Erased, func(line string) bool { // pages read before the erasure do not know it
			return !slices.Contains(f.Erased, line) && !slices.Contains(f.Deny, line)
		})
}

// widerOverrides reports whether a host may be fetched, or more of it, that was off or limited. Its delay does not
// matter.
func (f Filters) widerOverrides(old Filters, atMost func(limit, before int) bool) bool {
	var now, before stage.Overrides
	err := errors.Join(now.Reload(strings.NewReader(strings.Join(f.Hosts, "\n"))), before.Reload(strings.NewReader(strings.Join(old.Hosts, "\n"))))
	return err != nil || slices.ContainsFunc(slices.Concat(f.Hosts, old.Hosts), func(line string) bool {
		host, _, _ := strings.Cut(line, " ")
		n, b := now.Of(host), before.Of(host)
		return !n.Off && (b.Off || !atMost(n.MaxDepth, b.MaxDepth) || !atMost(n.MaxPages, b.MaxPages))
	})
}

// ReadFilters reads the file. Without one, known is false.
func ReadFilters(name string) (f Filters, known bool, err error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return f, err == nil, err
}

// Write replaces the file.
func (f Filters) Write(name string) error {
	text, err := json.MarshalIndent(f, "", "\t")
	if err != nil {
		return err
	}
	return stage.ReplaceFile(name, append(text, '\n'))
}
