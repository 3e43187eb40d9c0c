package robots

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// parseDelay accepts digits with at most one point, in seconds. What ParseFloat knows beyond
// that (signs, exponents, hexadecimal, Inf) is more likely an accident than a wish.
func parseDelay(value string) (delay time.Duration, ok bool) {
	if strings.Trim(value, "0123456789.") != "" {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(value, 64)
	// Too many digits make infinity and an error, but they are a number: a very long delay.
	if err != nil && !math.IsInf(seconds, 1) {
		return 0, false
	}
	if seconds >= MaxDelay.Seconds() {
		return MaxDelay, true
	}
	return time.Duration(math.Round(seconds * float64(time.Second))), true
}

// Window is a part of each day, in UTC. The minute of To belongs to it: 1300-1659 is from one
// o'clock until five. To before From means that it goes on after midnight.
type Window struct {
	From, To time.Duration // since midnight, in whole minutes
}

// Contains reports whether a moment lies in the window.
func (w Window) Contains(t time.Time) bool {
	t = t.UTC()
	since := time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
	if w.From <= w.To {
		return w.From <= since && since <= w.To
	}
	return w.From <= since || since <= w.To
}

// Rate is how many requests a site bears.
type Rate struct {
	Requests int
	Per      time.Duration // the time in which so many requests may be made
	Window   Window        // when that holds
}

// Delay returns the least time between two requests that keeps the rate, at most [MaxDelay].
func (r Rate) Delay() time.Duration {
	if r.Requests < 1 {
		return 0
	}
	n := time.Duration(r.Requests)
	delay := r.Per / n
	if r.Per%n > 0 {
		delay++ // a nanosecond less would let one request too many in
	}
	return min(delay, MaxDelay)
}

// allDay is the window of what holds always.
var allDay = Window{0, 23*time.Hour + 59*time.Minute}

// Rates returns what the Request-rate lines ask for, in the order of the file, as in 1/5 or
// 30/1m 0800-1759: a number of requests, a number of seconds or, with the unit behind it, of
// seconds (s), minutes (m), hours (h) or days (d), each of at most five digits, and the window in
// which that holds. What has another form is left out. Whether a crawler follows the slowest rate
// or the one of the hour is its own choice.
func (r Rules) Rates() (rates []Rate) {
	for value := range r.values(rateKind) {
		if rate, ok := parseRate(value); ok {
			rates = append(rates, rate)
		}
	}
	return rates
}

// VisitTimes returns the windows of the Visit-time lines, as in 0600-0845, in the order of the
// file. A crawler may come in any of them, and at any time if there are none. What has another
// form is left out.
func (r Rules) VisitTimes() (windows []Window) {
	for value := range r.values(visitKind) {
		if window, ok := parseWindow(value); ok {
			windows = append(windows, window)
		}
	}
	return windows
}

// units are those that a number in Request-rate may have behind it.
var units = map[string]time.Duration{
	"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

// parseRate refuses zeros: nobody means no requests by it, as there is Disallow for that.
func parseRate(value string) (rate Rate, ok bool) {
	value, hours := cutBlank(value)
	requests, period, _ := strings.Cut(value, "/")
	count := leading(period, isDigit)
	unit, known := units[strings.ToLower(period[len(count):])]
	n, ok1 := shortNumber(requests)
	m, ok2 := shortNumber(count)
	if !known || !ok1 || !ok2 || n == 0 || m == 0 {
		return Rate{}, false
	}
	rate = Rate{n, time.Duration(m) * unit, allDay}
	if hours != "" {
		rate.Window, ok = parseWindow(hours)
		return rate, ok
	}
	return rate, true
}

// parseWindow forgives blanks around the hyphen, which change nothing.
func parseWindow(value string) (window Window, ok bool) {
	from, to, _ := strings.Cut(value, "-")
	var ok1, ok2 bool
	window.From, ok1 = parseClock(strings.TrimRight(from, blanks))
	window.To, ok2 = parseClock(strings.TrimLeft(to, blanks))
	return window, ok1 && ok2
}

// parseClock reads hhmm. The end of the day may be written 2400, which is its last minute.
func parseClock(s string) (since time.Duration, ok bool) {
	if s == "2400" {
		return allDay.To, true
	}
	n, ok := shortNumber(s)
	hour, minute := n/100, n%100
	since = time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
	return since, ok && len(s) == len("hhmm") && hour < 24 && minute < 60
}

// shortNumber accepts up to five digits: no product of two such numbers, a day and a nanosecond
// overflows, and no honest number is longer.
func shortNumber(s string) (n int, ok bool) {
	if len(s) > 5 || leading(s, isDigit) != s {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
