package stage

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// Overrides are the operator's settings for single hosts. The zero Overrides has none. Its methods
// are safe for concurrent use.
type Overrides struct {
	hosts atomic.Pointer[map[string]Override]
}

// An Override has the settings of a host and of all hosts below it.
type Override struct {
	Delay    time.Duration // minimum delay between two requests; 0 means that of all hosts
	MaxDepth int           // links from a seed; 0 means that of all hosts
	MaxPages int           // of a host, if that is less than the limit of all hosts; 0 means that of all hosts
	Off      bool          // nothing is fetched

	text string
}

// Reload reads the file again. Each line has a host, followed by any of delay=DURATION,
// depth=NUMBER, pages=NUMBER and off, which hosts below cannot undo. What the line of a host does not
// set, that of the nearest host above does. A # begins a comment. After an error the old settings remain.
func (o *Overrides) Reload(r io.Reader) error {
	hosts, lines := map[string]Override{}, bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		override := Override{}
		for _, field := range fields[1:] {
			if err := override.set(field); err != nil {
				return fmt.Errorf("line %d: %q: %w", n, field, err)
			}
		}
		host, err := HostName(fields[0])
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if _, twice := hosts[host]; twice {
			return fmt.Errorf("line %d: %s has a line already: put all settings into one", n, host)
		}
		override.text = strings.Join(append([]string{host}, fields[1:]...), " ")
		hosts[host] = override
	}
	if err := lines.Err(); err != nil {
		return err
	}
	for host, override := range hosts {
		for _, above, dot := strings.Cut(host, "."); dot; _, above, dot = strings.Cut(above, ".") {
			override = override.below(hosts[above])
		}
		hosts[host] = override
	}
	o.hosts.Store(&hosts)
	return nil
}

// below returns the settings of a host below another one, whose settings hold for it, too, if it has no others.
func (o Override) below(above Override) Override {
	o.Delay = cmp.Or(o.Delay, above.Delay)
	o.MaxDepth = cmp.Or(o.MaxDepth, above.MaxDepth)
	o.MaxPages = cmp.Or(o.MaxPages, above.MaxPages)
	o.Off = o.Off || above.Off
	return o
}

func (o *Override) set(field string) (err error) {
	key, value, _ := strings.Cut(field, "=")
	switch key {
	case "off":
		o.Off = true
	case "delay":
		o.Delay, err = time.ParseDuration(value)
		if err == nil && o.Delay <= 0 {
			err = errors.New("want a positive duration")
		}
	case "depth":
		o.MaxDepth, err = positive(value)
	case "pages":
		o.MaxPages, err = positive(value)
	default:
		err = errors.New("want delay=DURATION, depth=NUMBER, pages=NUMBER or off")
	}
	return err
}

func positive(text string) (n int, err error) {
	if n, err = strconv.Atoi(text); err == nil && n <= 0 {
		err = errors.New("want a positive number")
	}
	return n, err
}

// Of returns the settings of a host.
func (o *Overrides) Of(host string) Override {
	if o == nil || o.hosts.Load() == nil {
		return Override{}
	}
	override, _ := ForHost(*o.hosts.Load(), host)
	return override
}

// Lines returns the lines of hosts of which settings may keep a page from being fetched, in order. Each begins with
// the host.
func (o *Overrides) Lines() (lines []string) {
	if o == nil || o.hosts.Load() == nil {
		return nil
	}
	hosts := *o.hosts.Load()
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		if hosts[host].limits() {
			lines = append(lines, hosts[host].text)
		}
	}
	return lines
}

func (o Override) limits() bool { return o.Off || o.MaxDepth > 0 || o.MaxPages > 0 }

// HostName returns the one form of a host's name that a list has, which also stands for all hosts below
// it. Others would match nothing, without a word.
func HostName(text string) (string, error) {
	host, err := weburl.HostName(strings.Trim(text, "[]"))
	if err != nil || strings.HasPrefix(host, ".") || strings.ContainsAny(host, "*/") {
		return "", fmt.Errorf("%q is not the name of a host, such as example.org, which includes all hosts below it", text)
	}
	return host, nil
}

// ForHost returns the value of a host, or of the nearest domain above it that has one.
func ForHost[V any](values map[string]V, host string) (v V, found bool) {
	host = strings.Trim(strings.TrimSuffix(host, "."), "[]")
	for {
		if v, found = values[host]; found {
			return v, true
		}
		_, above, dot := strings.Cut(host, ".")
		if !dot {
			return v, false
		}
		host = above
	}
}
