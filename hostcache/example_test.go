package hostcache_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
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

func ExampleCache_Lookup() {
	c := hostcache.New[int](hostcache.Options{})
	c.SetNegative("absent.test", time.Minute)
	e, known := c.Lookup("absent.test")
	fmt.Println(known, e.Negative, time.Until(e.Expires) > 50*time.Second)
	// Output: true true true
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

// Entries can be stored anywhere, here as lines of JSON.
func ExampleCache_Restore() {
	type line struct {
		Host string
		hostcache.Entry[string]
	}
	save := func(c *hostcache.Cache[string], w io.Writer) error {
		enc := json.NewEncoder(w)
		for host, e := range c.All() {
			if err := enc.Encode(line{host, e}); err != nil {
				return err
			}
		}
		return nil
	}
	load := func(c *hostcache.Cache[string], r io.Reader) error {
		for dec := json.NewDecoder(r); ; {
			var l line
			if err := dec.Decode(&l); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			if err := c.Restore(l.Host, l.Entry); err != nil {
				return err
			}
		}
	}
	c, again := hostcache.New[string](hostcache.Options{}), hostcache.New[string](hostcache.Options{})
	c.Set("www.example.com", "nginx", hostcache.Forever)
	var file strings.Builder
	if err := save(c, &file); err != nil {
		fmt.Println(err)
	}
	fmt.Print(file.String())
	if err := load(again, strings.NewReader(file.String())); err != nil {
		fmt.Println(err)
	}
	fmt.Println(again.Get("www.example.com"))
	// Output:
	// {"Host":"www.example.com","Value":"nginx"}
	// nginx true
}

func ExampleCache_Delete() {
	c := hostcache.New[string](hostcache.Options{})
	c.Set("www.example.com", "192.0.2.1", time.Hour)
	fmt.Println(c.Delete("www.example.com"), c.Delete("www.example.com"))
	_, known := c.Lookup("www.example.com")
	fmt.Println(known)
	// Output:
	// true false
	// false
}
