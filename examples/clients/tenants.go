package clients

import (
	"net/http"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/archivehttp"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotshttp"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// tenants returns a transport for each archive. They share the delays, and what robots.txt says.
func tenants(guarded http.RoundTripper, each ...*archive.Archive) (all []http.RoundTripper) {
	polite := schedulerhttp.NewTransport(nil, scheduler.Options{})
	obedient := robotshttp.NewTransport(polite, robots.Options{Agent: agent})
	for _, kept := range each {
		all = append(all, obedient.With(polite.With(archivehttp.NewTransport(guarded, kept))))
	}
	return all
}
