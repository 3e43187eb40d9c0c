package cockpit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	atMost := func(limit, before int) bool { // 0 and less are no limit
		return before <= 0 || limit > 0 && limit <= before
	}
	lost := func(before, now []string) bool {
		return slices.ContainsFunc(before, func(rule string) bool { return !slices.Contains(now, rule) })
	}
	exceptions := func(lines []string) (plus []string) {
		return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.HasPrefix(l, "+") })
	}
	rules := func(lines []string) []string {
		return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.HasPrefix(l, "+") })
	}
	reaches := []urlfilter.Reach{urlfilter.Page, urlfilter.Prefix, urlfilter.Host, urlfilter.Domain, urlfilter.Any}
	depth, before := f.Depth+1, old.Depth+1 // 0 and less are no limit
	return slices.Index(reaches, f.Scope) > slices.Index(reaches, old.Scope) ||
		!atMost(depth, before) || !atMost(f.HostPages, old.HostPages) ||
		len(old.Include) > 0 && (len(f.Include) == 0 || lost(f.Include, old.Include)) ||
		lost(old.Exclude, f.Exclude) ||
		lost(old.Hosts, f.Hosts) || lost(old.Erased, f.Erased) ||
		lost(rules(old.Deny), rules(f.Deny)) || lost(exceptions(f.Deny), exceptions(old.Deny)) ||
		f.Resources && !old.Resources || f.Sitemaps && !old.Sitemaps || f.AnyAddress && !old.AnyAddress ||
		f.AsFound && !old.AsFound
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
