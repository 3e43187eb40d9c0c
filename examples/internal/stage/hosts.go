package stage

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"
)

// ReadHosts reads a table of addresses in the format of /etc/hosts. Of a host with more than one, the
// first counts. Name is what errors call it.
func ReadHosts(r io.Reader, name string) (map[string]netip.Addr, error) {
	table := map[string]netip.Addr{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		addr, err := netip.ParseAddr(fields[0])
		if err != nil {
			return nil, fmt.Errorf("hosts file %s:%d: %w", name, n, err)
		}
		for _, host := range fields[1:] {
			host = strings.ToLower(host)
			if _, named := table[host]; !named {
				table[host] = addr
			}
		}
	}
	return table, lines.Err()
}

// LookupIn resolves the hosts of a table; others it passes on to another lookup.
func LookupIn(table map[string]netip.Addr, others Lookup) Lookup {
	return func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
		if addr, ok := table[host]; ok {
			return []netip.Addr{addr}, 0, nil
		}
		return others(ctx, host)
	}
}
