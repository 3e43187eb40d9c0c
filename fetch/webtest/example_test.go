package webtest_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

func Example() {
	web, err := webtest.Start(webtest.Options{Seed: 1, Hosts: 10, Pages: 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer web.Close()
	client := web.Client()
	for h := range web.Hosts() {
		resp, err := client.Get(h.URL())
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}
	for _, r := range web.Log()[6:9] {
		fmt.Println(r.Status, r.URL(), r.Addr)
	}
	// Output:
	// 200 http://h00006.vweb.test/ 127.16.0.7
	// 200 http://www.site7.example/ 127.16.0.8
	// 200 http://h00008.vweb.test/ 127.16.0.9
}

func ExampleViolations() {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	addr := netip.MustParseAddr("127.16.0.1")
	log := []webtest.Request{
		{Time: at(0), Host: "a.test", Addr: addr},
		{Time: at(5), Host: "a.test", Addr: addr},
		{Time: at(7), Host: "a.test", Addr: addr},
	}
	fiveSeconds := func(string) time.Duration { return 5 * time.Second }
	for _, v := range webtest.Violations(log, fiveSeconds, nil) {
		fmt.Println(v.Later.Host, v.Gap, "instead of", v.Want)
	}
	// Output: a.test 2s instead of 5s
}
