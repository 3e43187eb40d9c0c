package hostcache_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/hostcache"
)

func Example() {
	lookup := func(_ context.Context, host string) (netip.Addr, time.Duration, error) {
		fmt.Println("asking for", host)
		if host == "absent.example.com" {
			return netip.Addr{}, time.Minute, fmt.Errorf("%w: NXDOMAIN", hostcache.ErrNegative)
		}
		return netip.MustParseAddr("192.0.2.1"), time.Hour, nil
	}
	addrs := hostcache.New[netip.Addr](hostcache.Options{})
	for _, host := range []string{"www.example.com", "absent.example.com", "www.example.com"} {
		addr, err := addrs.Load(context.Background(), host, lookup)
		fmt.Println(addr, err)
	}
	for host, addr := range addrs.Under("example.com") {
		fmt.Println(host, addr)
	}
	// Output:
	// asking for www.example.com
	// 192.0.2.1 <nil>
	// asking for absent.example.com
	// invalid IP hostcache: host has no value: NXDOMAIN
	// 192.0.2.1 <nil>
	// www.example.com 192.0.2.1
}

// A restarted crawler need not look up hosts again.
func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "addrs")

	addrs, err := hostcache.Open[netip.Addr](file, hostcache.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	addrs.Set("www.example.com", netip.MustParseAddr("192.0.2.1"), time.Hour)
	if err := addrs.Save(); err != nil {
		fmt.Println(err)
	}
	again, err := hostcache.Open[netip.Addr](file, hostcache.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(again.Get("www.example.com"))
	// Output: 192.0.2.1 true
}
