package replay

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spinneret-go/spinneret/archive"
)

// versionsPerPage is how many versions are on one page of the table. The drawing shows all of them.
const versionsPerPage = 100

// timeline is the data of the page of all versions of a URL.
type timeline struct {
	URL         string
	Folder      string
	Marks       []mark
	Dense       bool // the marks have to be small
	Ticks       []tick
	Rows        []row
	Total       int
	Changed     int
	Failed      int
	First, Last time.Time
	Page        int
	HasBefore   bool
	HasAfter    bool
}

// Before is the number of the previous page.
func (t timeline) Before() int { return t.Page - 1 }

// After is the number of the next page.
func (t timeline) After() int { return t.Page + 1 }

// row is a version in the table.
type row struct {
	archive.Version
	View    string
	Changes string // address of the comparison with the previous version
	Size    string
	Valid   string // for how long
}

// timeline shows all versions of a URL.
func (v *Handler) timeline(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	u, err := parseURL(q.Get("url"))
	if err != nil {
		v.fail(w, http.StatusBadRequest, "Invalid address", "An http or https URL is "+
			"needed.")
		return
	}
	url := u.String()
	versions, err := v.archive.Versions(url)
	if err == nil && len(versions) == 0 {
		err = archive.ErrNotFound
	}
	if err != nil {
		v.missing(w, place{url: u}, err, 0)
		return
	}
	dir := u
	dir.Path, dir.Query, dir.HasQuery = directoryOf(dir.Path), "", false
	t := timeline{URL: url, Folder: browseAddress(dir.String(), time.Time{}), Total: len(versions),
		Marks: marks(url, versions), Ticks: ticks(versions[0].Time, versions[len(versions)-1].Time),
		First: versions[0].Time, Last: versions[len(versions)-1].Time}
	t.Dense = len(t.Marks) > maxLarge
	for i := range versions {
		switch versions[i].Kind {
		case archive.Changed:
			t.Changed++
		case archive.Failed:
			t.Failed++
		}
	}
	numbers := make([]int, len(versions)) // from the last version to the first
	for i := range numbers {
		numbers[i] = len(versions) - 1 - i
	}
	shown, page := pageOf(numbers, q.Get("page"), versionsPerPage)
	t.Page, t.HasBefore, t.HasAfter = page, page > 1, page*versionsPerPage < len(versions)
	for _, i := range shown {
		t.Rows = append(t.Rows, rowOf(url, versions, i))
	}
	v.writePage(w, http.StatusOK, "timeline", frameOf{Title: "Versions of " + url, Query: url,
		Page: t})
}

// rowOf describes one version.
func rowOf(url string, versions []archive.Version, i int) row {
	version := versions[i]
	r := row{Version: version, View: at(viewPath, version.Time, url),
		Size: bytesText(version.Content.Length), Valid: "until now"}
	if !version.Until.IsZero() {
		r.Valid = "for " + span(version.Until.Sub(version.Time))
	}
	if i > 0 {
		r.Changes = diffAddress(url, versions[i-1].Time, version.Time)
	}
	return r
}

// span formats a duration in its largest unit.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{365 * day, "year"}, {30 * day, "month"}, {day, "day"}, {time.Hour, "hour"},
		{time.Minute, "minute"}, {time.Second, "second"}} {
		if n := int(d / unit.size); n == 1 {
			return "1 " + unit.name
		} else if n > 1 {
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return "less than a second"
}

// Positions on the axis are percentages, so that a browser can draw it in any width.
const (
	axisFrom = 3.0
	axisTo   = 97.0

	// slots bounds the number of marks: more could not be distinguished.
	slots = 120

	// maxLarge is how many marks of the normal size there may be.
	maxLarge = 40
)

// mark is one or more versions on the axis.
type mark struct {
	X       string
	Kind    string // of the version with the greatest weight
	Address string // of the last one of that kind
	Title   string
}

// axis returns the position of a time between two others, or the middle if they are equal.
func axis(t, first, last time.Time) float64 {
	if !last.After(first) {
		return (axisFrom + axisTo) / 2
	}
	share := float64(t.Sub(first)) / float64(last.Sub(first))
	return axisFrom + share*(axisTo-axisFrom)
}

// marks merges versions whose marks would overlap. The one with the greatest weight is shown, so
// that unchanged versions do not hide changes.
func marks(url string, versions []archive.Version) (list []mark) {
	first, last := versions[0].Time, versions[len(versions)-1].Time
	slotOf := func(v *archive.Version) int {
		return int((axis(v.Time, first, last) - axisFrom) / (axisTo - axisFrom) * slots)
	}
	for i := 0; i < len(versions); {
		slot, most, n := slotOf(&versions[i]), versions[i], 0
		for ; i < len(versions) && slotOf(&versions[i]) == slot; i++ {
			n++
			if weight(versions[i].Kind) >= weight(most.Kind) {
				most = versions[i]
			}
		}
		m := mark{X: percent(axis(most.Time, first, last)), Kind: most.Kind.String(),
			Address: at(viewPath, most.Time, url)}
		m.Title = fmt.Sprintf("%s, %s, status %d", when(most.Time), m.Kind, most.Status)
		if n > 1 {
			m.Title += fmt.Sprintf(", and %d more nearby", n-1)
		}
		list = append(list, m)
	}
	return list
}

// weight decides which of several versions a mark shows. A change matters more than an error:
// servers fail now and then, and the table lists all versions.
func weight(k archive.Kind) int {
	switch k {
	case archive.Failed:
		return 1
	case archive.Changed:
		return 2
	}
	return 0
}

func percent(x float64) string { return fmt.Sprintf("%.2f%%", x) }

// tick is a date on the axis.
type tick struct {
	X, Label string
	Minor    bool // hidden in a narrow window
}

// maxTicks is how many dates fit on the axis.
const maxTicks = 6

// scales are the distances between ticks, with the formats of their labels. Months and years are
// counted in months, because they differ in length.
var scales = []struct {
	months int
	step   time.Duration
	label  string
}{
	{0, time.Second, "15:04:05"}, {0, 5 * time.Second, "15:04:05"},
	{0, 15 * time.Second, "15:04:05"}, {0, time.Minute, "15:04"}, {0, 5 * time.Minute, "15:04"},
	{0, 15 * time.Minute, "15:04"}, {0, time.Hour, "15:04"}, {0, 3 * time.Hour, "2 Jan 15:04"},
	{0, 12 * time.Hour, "2 Jan 15:04"}, {0, 24 * time.Hour, "2 Jan"},
	{0, 2 * 24 * time.Hour, "2 Jan"}, {0, 7 * 24 * time.Hour, "2 Jan"}, {1, 0, "Jan 2006"},
	{3, 0, "Jan 2006"}, {6, 0, "Jan 2006"}, {12, 0, "2006"}, {24, 0, "2006"}, {60, 0, "2006"},
	{120, 0, "2006"}, {1200, 0, "2006"},
}

// ticks returns round dates between two times.
func ticks(first, last time.Time) (list []tick) {
	for _, s := range scales {
		const month = 30 * 24 * time.Hour
		step := s.step + time.Duration(s.months)*month
		if step <= 0 || last.Sub(first)/step >= maxTicks {
			continue
		}
		t := first.UTC().Truncate(max(s.step, 1))
		if s.months > 0 {
			months := (t.Year()*12 + int(t.Month()) - 1) / s.months * s.months
			t = time.Date(months/12, time.Month(months%12+1), 1, 0, 0, 0, 0, time.UTC)
		}
		for ; !t.After(last); t = t.Add(s.step).AddDate(0, s.months, 0) {
			if !t.Before(first) {
				list = append(list, tick{percent(axis(t, first, last)), t.Format(s.label),
					len(list)%2 == 1})
			}
		}
		return list
	}
	return nil
}
