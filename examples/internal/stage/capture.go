package stage

import (
	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/fetch"
)

// truncated maps why a body ended to what WARC-Truncated can say.
var truncated = map[fetch.Kind]string{
	fetch.Whole:         "",
	fetch.CutLength:     "length",
	fetch.CutTime:       "time",
	fetch.CutSlow:       "time",
	fetch.CutDisconnect: "disconnect",
}

// Capture turns what was fetched into what the archive keeps: the bytes as they were sent.
func Capture(resp *fetch.Response) archive.Capture {
	why, known := truncated[resp.RawCut]
	if !known {
		why = "unspecified"
	}
	c := archive.Capture{
		URL:       resp.URL,
		Time:      resp.Start,
		Addr:      resp.Addr.Addr(),
		Protocol:  resp.Proto,
		Request:   resp.RequestHead,
		Head:      resp.Head,
		Body:      resp.Raw,
		Truncated: why,
	}
	if resp.TLS != nil {
		c.TLS, c.CipherSuite = resp.TLS.Version, resp.TLS.CipherSuite
	}
	return c
}
