package resolve

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A config is the system's configuration for names.
type config struct {
	servers  []netip.AddrPort
	search   []string // suffixes, each with a dot at the end
	ndots    int      // a name with that many dots is first tried as it is
	timeout  time.Duration
	attempts int
	rotate   bool
	tcp      bool // no UDP
	only4    bool // no AAAA
	hosts    map[string][]netip.Addr
	missing  bool // there is no resolv.conf
}

const (
	resolvConf = "/etc/resolv.conf"
	hostsFile  = "/etc/hosts"

	// checkEvery is how often the files are looked at.
	checkEvery = 5 * time.Second
)

// A system reads the system's files, and reads them again when they have changed.
type system struct {
	files   [2]string // resolv.conf and the hosts file
	config  atomic.Pointer[config]
	started time.Time
	checked atomic.Int64 // nanoseconds after that
	mu      sync.Mutex
	stamps  [2]stamp
}

// A stamp tells whether a file has changed.
type stamp struct {
	time time.Time
	size int64
}

func stampOf(file string) (s stamp) {
	if info, err := os.Stat(file); err == nil {
		s = stamp{info.ModTime(), info.Size()}
	}
	return s
}

func newSystem(conf, hosts string) *system {
	s := &system{files: [2]string{conf, hosts}, started: time.Now()}
	s.refresh()
	return s
}

// recent returns the config if it was checked a moment ago. It takes no lock: each look-up calls it.
func (s *system) recent() (c *config, ok bool) {
	c = s.config.Load()
	return c, c != nil && time.Since(s.started)-time.Duration(s.checked.Load()) < checkEvery
}

// refresh returns the present config.
func (s *system) refresh() *config {
	if c, ok := s.recent(); ok {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.recent(); ok { // another has done it
		return c
	}
	s.checked.Store(int64(time.Since(s.started)))
	stamps := [2]stamp{stampOf(s.files[0]), stampOf(s.files[1])}
	if old := s.config.Load(); old != nil && stamps == s.stamps {
		return old
	}
	c := config{missing: true}
	if old := s.config.Load(); old != nil {
		c = *old
	}
	conf, confErr := readIfThere(s.files[0])
	if hosts := c.hosts; confErr == nil {
		c = config{missing: true}
		if conf != nil {
			c = parseResolvConf(bytes.NewReader(conf))
		}
		c.hosts = hosts
	}
	table, hostsErr := readIfThere(s.files[1])
	if hostsErr == nil {
		c.hosts, _ = ParseHosts(bytes.NewReader(table)) // a bad line is skipped, as elsewhere
	}
	if confErr == nil && hostsErr == nil { // else what was known stays, and the next check tries again
		s.stamps = stamps
	}
	s.config.Store(&c)
	return &c
}

// readIfThere returns nil if there is no such file. Any other error says nothing about the file: the
// process may have run out of descriptors.
func readIfThere(file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// names returns the names to query when looking up a name, as resolv.conf(5) describes. Those of Tor are
// none of DNS: whoever sees a query for one knows too much (RFC 7686).
func (c *config) names(name string) []string {
	if strings.HasSuffix(strings.TrimSuffix(name, "."), ".onion") {
		return nil
	}
	if strings.HasSuffix(name, ".") {
		return []string{name}
	}
	var names []string
	asIs := strings.Count(name, ".") >= c.ndots
	if asIs {
		names = append(names, name+".")
	}
	for _, suffix := range c.search {
		if long := name + "." + suffix; len(long) <= 254 {
			names = append(names, long)
		}
	}
	if !asIs {
		names = append(names, name+".")
	}
	return names
}

// parseResolvConf reads a file as resolv.conf(5) describes it. It skips what it does not know.
func parseResolvConf(r io.Reader) config {
	c := config{ndots: 1, timeout: DefaultTimeout, attempts: 2}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, math.MaxInt)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "#")
		text, _, _ = strings.Cut(text, ";")
		fields := strings.Fields(text)
		if len(fields) < 2 {
			continue
		}
		switch rest := fields[1:]; fields[0] {
		case "nameserver":
			if addr, err := netip.ParseAddr(rest[0]); err == nil && len(c.servers) < 3 {
				c.servers = append(c.servers, netip.AddrPortFrom(addr, 53))
			}
		case "domain":
			c.search = suffixes(rest[:1])
		case "search":
			c.search = suffixes(rest)
		case "options":
			for _, option := range rest {
				c.set(option)
			}
		}
	}
	if len(c.servers) == 0 {
		local := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
		for _, addr := range local {
			c.servers = append(c.servers, netip.AddrPortFrom(addr, 53))
		}
	}
	return c
}

func suffixes(names []string) (list []string) {
	for _, name := range names {
		if name, ok := normalize(name); ok {
			list = append(list, strings.TrimSuffix(name, ".")+".")
		}
	}
	return list
}

// set sets an option of resolv.conf.
func (c *config) set(option string) {
	name, value, _ := strings.Cut(option, ":")
	n, err := strconv.Atoi(value)
	switch {
	case name == "rotate":
		c.rotate = true
	case name == "use-vc" || name == "usevc" || name == "tcp":
		c.tcp = true
	case name == "no-aaaa":
		c.only4 = true
	case err != nil:
	case name == "ndots":
		c.ndots = min(max(n, 0), 15)
	case name == "timeout":
		c.timeout = time.Duration(min(max(n, 1), 30)) * time.Second
	case name == "attempts":
		c.attempts = min(max(n, 1), 5)
	}
}

func isAddr(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// ParseHosts reads a table of addresses in the format of /etc/hosts, for [Options.Hosts]. It returns all
// that it understands, and an error about the first line with something that it does not, such as *.example.com.
func ParseHosts(r io.Reader) (table map[string][]netip.Addr, err error) {
	table = map[string][]netip.Addr{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, math.MaxInt)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		addr, wrong := netip.ParseAddr(fields[0])
		for _, host := range fields[1:] {
			switch name, ok := normalize(host); {
			case ok && addr.IsValid():
				name = strings.TrimSuffix(name, ".")
				table[name] = append(table[name], addr.Unmap())
			case wrong == nil && !isAddr(host): // lists of blocked hosts begin with 0.0.0.0 0.0.0.0
				wrong = fmt.Errorf("%q is not a name", host)
			}
		}
		if err == nil && wrong != nil {
			err = fmt.Errorf("resolve: line %d: want an address and names: %w", n, wrong)
		}
	}
	if err == nil && lines.Err() != nil {
		err = fmt.Errorf("resolve: read hosts: %w", lines.Err())
	}
	return table, err
}
