package replay

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
)

// versionsPerPage is how many versions are on one page of the table. The drawing shows all of them.
const versionsPerPage = 100

// timeline is the data of the page of all versions of a URL.
type timeline struct {
	URL         string
	Folder      string
	From, To    time.Time // the part that is shown; the zero Time means that it has no such end
	All         string    // address of the page without From and To
	Marks       []mark
	Dense       bool // the marks have to be small
	Ticks       []tick
	Rows        []row
	Selected    []row // of other pages of the list, for a comparison
	Total       int
	Changed     int
	Failed      int
	First, Last time.Time
	Pager       pager
}

// row is a version in the table.
type row struct {
	archive.Version
	View     string
	Changes  string // address of the comparison with the previous version
	Size     string
	Valid    string // for how long
	Pick     bool   // there is another version to compare one with
	Hidden   bool   // an address with its time shows a later version of the same time
	From, To bool   // selected for a comparison
}

// timeline shows all versions of a URL, or those of a part of the time.
func (v *Handler) timeline(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	u, err := parseURL(q.Get("url"))
	from, okFrom := parseTime(q.Get("from"))
	to, okTo := parseTime(q.Get("to"))
	if err != nil || !okFrom || !okTo {
		v.fail(w, http.StatusBadRequest, "Invalid address", "An http or https URL is "+
			"needed.")
		return
	}
	u = v.stored(u)
	url := u.String()
	// A history takes a kilobyte a version, and few are long: no more than two are in memory. A page
	// repeats the URL for each row and each mark.
	giveBack, ok := v.take(w, r, v.memory, maxMemory/2)
	if !ok {
		return
	}
	defer giveBack()
	versions, err := v.archive.Versions(url)
	first, end := within(versions, from, to)
	if err == nil && first == end {
		err = archive.ErrNotFound
	}
	if err != nil {
		v.missing(w, place{moment: to, url: u}, err, 0)
		return
	}
	dir := folderOf(u)
	markChanges(versions)
	shown := versions[first:end]
	t := timeline{URL: url, Folder: browseAddress(dir.String(), time.Time{}), From: from, To: to,
		All: versionsAddress(url), Total: len(shown), Marks: marks(url, shown),
		First: shown[0].Time, Last: shown[len(shown)-1].Time}
	t.Ticks, t.Dense = ticks(t.First, t.Last), len(t.Marks) > maxLarge
	for i := range shown {
		switch shown[i].Kind {
		case archive.Changed:
			t.Changed++
		case archive.Failed:
			t.Failed++
		}
	}
	numbers := make([]int, len(shown)) // from the last version to the first
	for i := range numbers {
		numbers[i] = end - 1 - i
	}
	numbers, t.Pager = pageOf(numbers, q.Get("page"), fitting(versionsPerPage, url))
	t.table(versions, numbers, q.Get("a"), q.Get("b"))
	v.writePage(w, http.StatusOK, "timeline", frameOf{Title: "Versions of " + url, Query: url,
		Page: t})
}

// within returns the range of the versions that were found in a part of the time.
func within(versions []archive.Version, from, to time.Time) (first, end int) {
	for end < len(versions) && (to.IsZero() || !versions[end].Time.After(to)) {
		end++
	}
	for first < end && versions[first].Time.Before(from) {
		first++
	}
	return first, end
}

// table fills in the rows of a page of the list, and those selected for a comparison on other pages.
// Without a selection, the first two rows are compared.
func (t *timeline) table(versions []archive.Version, numbers []int, a, b string) {
	to, ok := timeIn(versions, b)
	if !ok {
		to = versions[numbers[0]].Time
	}
	from, ok := timeIn(versions, a)
	for i := 0; i < len(numbers) && !ok; i++ {
		from = versions[numbers[i]].Time
		ok = !from.Equal(to)
	}
	for i := len(versions) - 1; i >= 0; i-- {
		isFrom, isTo := versions[i].Time.Equal(from), versions[i].Time.Equal(to)
		listed := i <= numbers[0] && i >= numbers[len(numbers)-1]
		if !listed && !isFrom && !isTo {
			continue
		}
		r := rowOf(t.URL, versions, i)
		if r.Hidden && !listed {
			continue
		}
		r.Pick, r.From, r.To = len(versions) > 1, isFrom, isTo
		if listed {
			t.Rows = append(t.Rows, r)
		} else {
			t.Selected = append(t.Selected, r)
		}
	}
}

// timeIn parses the time of a version in an address. It is false if no version has that time.
func timeIn(versions []archive.Version, moment string) (t time.Time, ok bool) {
	t, ok = parseMoment(moment)
	if !ok || formatMoment(t) != moment {
		return t, false
	}
	_, ok = slices.BinarySearchFunc(versions, t, func(v archive.Version, t time.Time) int {
		return v.Time.Compare(t)
	})
	return t, ok
}

// markChanges marks versions as changed that repeat a version before the last one. To the archive they
// are unchanged: other crawlers write them as references to any older version with the same body. To a
// reader the page has changed back.
func markChanges(versions []archive.Version) {
	var last *archive.Version // without the errors
	for i := range versions {
		v := &versions[i]
		if v.Kind == archive.Failed {
			continue
		}
		if v.Kind == archive.Unchanged && last != nil && otherBody(v, last) {
			v.Kind = archive.Changed
		}
		last = v
	}
}

// otherBody reports whether the digests of two versions prove that their bodies differ. Those of different
// algorithms prove nothing.
func otherBody(a, b *archive.Version) bool {
	algorithm, x, _ := strings.Cut(a.Digest(), ":")
	other, y, _ := strings.Cut(b.Digest(), ":")
	return algorithm == other && x != y
}

// fitting returns how many of a number of items fit on a page that repeats a URL for each.
func fitting(n int, url string) int { return max(10, min(n, maxListed/len(url))) }

// rowOf describes one version.
func rowOf(url string, versions []archive.Version, i int) row {
	version := versions[i]
	r := row{Version: version, View: at(viewPath, version.Time, url),
		Size: bytesText(version.Content.Length), Valid: "until now"}
	if !version.Until.IsZero() {
		r.Valid = "for " + span(version.Until.Sub(version.Time))
	}
	r.Hidden = i+1 < len(versions) && versions[i+1].Time.Equal(version.Time)
	for i > 0 && versions[i-1].Time.Equal(version.Time) {
		i-- // an address has only a time
	}
	if i > 0 && !r.Hidden {
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
	Address string // of the version, or of the timeline of several
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
// that unchanged versions hide neither errors nor changes. The mark leads to a timeline of its own,
// which shows them all.
func marks(url string, versions []archive.Version) (list []mark) {
	first, last := versions[0].Time, versions[len(versions)-1].Time
	n := float64(fitting(slots, url))
	slotOf := func(v *archive.Version) int {
		return int((axis(v.Time, first, last) - axisFrom) / (axisTo - axisFrom) * n)
	}
	for i := 0; i < len(versions); {
		start, most, failed := i, versions[i], 0
		for slot := slotOf(&most); i < len(versions) && slotOf(&versions[i]) == slot; i++ {
			if weight(versions[i].Kind) >= weight(most.Kind) {
				most = versions[i]
			}
			if versions[i].Kind == archive.Failed {
				failed++
			}
		}
		m := mark{X: percent(axis(most.Time, first, last)), Kind: most.Kind.String(),
			Address: at(viewPath, most.Time, url),
			Title:   fmt.Sprintf("%s, %s, status %d", when(most.Time), most.Kind, most.Status)}
		if from, to := versions[start].Time, versions[i-1].Time; to.After(from) {
			m.Address = versionsBetween(url, from, to)
			m.Title = fmt.Sprintf("%d versions from %s to %s", i-start, when(from), when(to))
			if failed > 0 {
				m.Title += fmt.Sprintf(", %d with an error", failed)
			}
		}
		list = append(list, m)
	}
	return list
}

// weight decides which of several versions a mark shows.
func weight(k archive.Kind) int {
	switch k {
	case archive.Failed:
		return 2
	case archive.Changed:
		return 1
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
