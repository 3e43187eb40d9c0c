package cockpit

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// ServeDemo starts the built-in web. Its pages change by the clock of the crawl, so they change as
// fast as they are due. Its hosts are added to the seeds.
func (c *Config) ServeDemo(log io.Writer) (*webtest.Web, error) {
	clock, err := stage.OpenClock(filepath.Join(c.Out, BeganName), c.Pace)
	if err != nil {
		return nil, err
	}
	o := demoWeb
	o.Now = clock.Now
	web, err := webtest.Start(o)
	if err != nil {
		return nil, fmt.Errorf("serve the built-in web: %w", err)
	}
	for host := range web.Hosts() {
		c.Seeds = append(c.Seeds, host.URL())
	}
	fmt.Fprintf(log, "No seeds given: crawling a virtual web of %d hosts on %d loopback addresses.\n"+
		"To crawl a real site: fullcrawler -contact https://you.example/bot https://www.example.org/\n\n",
		o.Hosts, o.Addrs)
	return web, nil
}

// On sends all requests to a virtual web.
func On(web *webtest.Web) stage.Network {
	return stage.Network{
		Resolve: func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
			addrs, err := web.Resolve(ctx, host)
			return addrs, time.Hour, err
		},
		Dial:  web.Dial,
		Roots: web.Roots(),
	}
}

// demoWeb is a web of a few hundred pages, with a little of everything that a crawler encounters.
var demoWeb = webtest.Options{
	Seed:  2026,
	Hosts: 40,
	Addrs: 25,
	Pages: 10,
	Traits: func(host int) webtest.Traits {
		switch host {
		case 2:
			return webtest.Traits{Sitemap: webtest.Sitemap{Orphans: 5, Index: true}}
		case 3:
			return webtest.Traits{Robots: webtest.Robots{CrawlDelay: DemoCrawlDelay}}
		case 5:
			return webtest.Traits{Robots: webtest.Robots{Mode: webtest.RobotsMissing}, Gzip: true}
		case 7:
			return webtest.Traits{Robots: webtest.Robots{Mode: webtest.RobotsError}}
		case 11:
			return webtest.Traits{Traps: webtest.TrapLoop | webtest.TrapBroken | webtest.TrapBomb | webtest.TrapShort}
		case 13:
			return webtest.Traits{Refuse: true}
		}
		return webtest.Traits{
			Gzip: host%2 == 0, Redirects: 0.1, Change: webtest.Change{Mean: 5 * 24 * time.Hour, Sigma: 1},
		}
	},
}
