package schedulerhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// Requests of any number of goroutines wait in RoundTrip until their host may be visited.
func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer site.Close()
	client := &http.Client{Transport: schedulerhttp.NewTransport(nil,
		scheduler.Options{HostDelay: 100 * time.Millisecond})}
	start := time.Now()
	for range 3 {
		resp, err := client.Get(site.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}
	fmt.Println(time.Since(start) >= 200*time.Millisecond)
	// Output: true
}

// Hosts gives access to the delays of hosts, and explains why a request waits.
func ExampleTransport_Hosts() {
	transport := schedulerhttp.NewTransport(nil, scheduler.Options{})
	transport.SetHost("slow.test", scheduler.Host{Delay: time.Minute})
	fmt.Println(transport.Hosts().Explain("slow.test").Known)
	// Output: true
}
