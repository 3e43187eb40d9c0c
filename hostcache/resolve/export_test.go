package resolve

import (
	"io"
	"time"
)

// UseFiles has a Resolver read other files than the system's.
func (r *Resolver) UseFiles(conf, hosts string) {
	r.system = newSystem(conf, hosts)
}

// Lanes returns how many domains have queries.
func (r *Resolver) Lanes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lanes)
}

// Names returns what a resolv.conf makes of a name.
func Names(conf io.Reader, name string) []string {
	c := parseResolvConf(conf)
	return c.names(name)
}

// Conf is a config, as text for comparisons.
type Conf struct {
	Servers  []string
	Search   []string
	NDots    int
	Timeout  time.Duration
	Attempts int
	Flags    string
}

// ParseConf reads a resolv.conf.
func ParseConf(r io.Reader) (conf Conf) {
	c := parseResolvConf(r)
	for _, s := range c.servers {
		conf.Servers = append(conf.Servers, s.String())
	}
	conf.Search, conf.NDots, conf.Timeout, conf.Attempts = c.search, c.ndots, c.timeout, c.attempts
	for flag, set := range map[string]bool{"r": c.rotate, "t": c.tcp, "4": c.only4} {
		if set {
			conf.Flags += flag
		}
	}
	return conf
}
