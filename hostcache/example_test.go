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
	resolve := func(_ context.Context, host string) ([4]byte, time.Duration, error) {
		fmt.Println("asking for", host)
		if host == "absent.example.com" {
			return [4]byte{}, time.Minute, fmt.Errorf("%w: NXDOMAIN", hostcache.ErrNegative)
		}
		return [4]byte{192, 0, 2, byte(len(host))}, time.Hour, nil
	}
	addrs := hostcache.New[[4]byte](hostcache.Options{})
	for _, host := range []string{"www.example.com", "absent.example.com", "www.example.com"} {
		addr, err := addrs.Load(context.Background(), host, resolve)
		fmt.Println(netip.AddrFrom4(addr), err)
	}
	for host := range addrs.Under("example.com") {
		fmt.Println(host)
	}
	// Output:
	// asking for www.example.com
	// 192.0.2.15 <nil>
	// asking for absent.example.com
	// 0.0.0.0 hostcache: host has no value: NXDOMAIN
	// 192.0.2.15 <nil>
	// www.example.com
}

func ExampleTrie() {
	seen := hostcache.NewTrie[int]()
	for _, key := range []string{"com.example", "com.example.www", "com.example-x", "org.example"} {
		n, _ := seen.Get(key)
		seen.Set(key, n+1)
	}
	for key := range seen.Prefix("com.example.") {
		fmt.Println(key)
	}
	key, _, _ := seen.LongestPrefix("com.example.ftp")
	fmt.Println(key)
	// Output:
	// com.example.www
	// com.example
}

func ExampleSharded() {
	pages := hostcache.NewSharded[int]()
	for _, host := range []string{"a.test", "b.test", "a.test"} {
		pages.Update(host, func(n int, _ bool) int { return n + 1 })
	}
	for host, n := range pages.All() {
		fmt.Println(host, n)
	}
	// Output:
	// a.test 2
	// b.test 1
}

func ExampleCache_Lookup() {
	c := hostcache.New[int](hostcache.Options{})
	c.SetNegative("absent.test", time.Minute)
	e, known := c.Lookup("absent.test")
	fmt.Println(known, e.Negative, time.Until(e.Expires) > 50*time.Second)
	// Output: true true true
}

// A crawler that starts again need not ask again.
func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "hosts")

	c := hostcache.New[[4]byte](hostcache.Options{})
	c.Set("www.example.com", [4]byte{192, 0, 2, 1}, time.Hour)
	if err := c.Save(file, hostcache.Codec[[4]byte]{}); err != nil {
		fmt.Println(err)
	}
	c, err := hostcache.Open(file, hostcache.Codec[[4]byte]{}, hostcache.Options{})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(c.Get("www.example.com"))
	// Output: [192 0 2 1] true
}
