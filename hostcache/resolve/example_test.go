package resolve_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

func Example() {
	names := resolve.New(resolve.Options{}) // the system's name servers and hosts file
	client := &http.Client{Transport: &http.Transport{DialContext: names.DialContext}}
	_ = client

	addrs, err := names.LookupNetIP(context.Background(), "ip4", "localhost")
	fmt.Println(addrs, err)
	// Output: [127.0.0.1] <nil>
}

// A crawler has to know whose fault an error is.
func ExampleResolver_LookupNetIP() {
	hosts, err := resolve.ParseHosts(strings.NewReader("192.0.2.1 www.example.com"))
	if err != nil {
		fmt.Println(err)
	}
	nobody := []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}
	names := resolve.New(resolve.Options{Hosts: hosts, Servers: nobody, Timeout: time.Second})
	for _, host := range []string{"www.example.com", "not..a..name", "www.example.org"} {
		addrs, err := names.LookupNetIP(context.Background(), "ip", host)
		var dns *net.DNSError
		errors.As(err, &dns)
		switch {
		case err == nil:
			fmt.Println(host, addrs)
		case dns.IsNotFound:
			fmt.Println(host, "does not exist")
		case errors.Is(err, resolve.ErrUnreachable):
			fmt.Println(host, "cannot be looked up now")
		}
	}
	// Output:
	// www.example.com [192.0.2.1]
	// not..a..name does not exist
	// www.example.org cannot be looked up now
}

// Addresses can come from anywhere.
func ExampleOptions() {
	names := resolve.New(resolve.Options{
		Lookup: func(_ context.Context, host string) ([]netip.Addr, time.Duration, error) {
			fmt.Println("asking for", host)
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, time.Hour, nil
		},
	})
	for range 2 {
		fmt.Println(names.Addr(context.Background(), "www.example.com"))
	}
	// Output:
	// asking for www.example.com
	// 192.0.2.1 <nil>
	// 192.0.2.1 <nil>
}
