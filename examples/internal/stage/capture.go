package stage

import (
	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/fetch"
)

// Capture turns what was fetched into what the archive keeps: the bytes as they were sent.
func Capture(resp *fetch.Response) archive.Capture {
	c := archive.Capture{
		URL:     resp.URL,
		Time:    resp.Timing.Start,
		Addr:    resp.Addr.Addr(),
		Request: resp.RequestHead,
		Head:    resp.Head,
		Body:    resp.Raw,
	}
	if resp.RawCut != fetch.Whole {
		c.Truncated = resp.RawCut.String()
	}
	return c
}
