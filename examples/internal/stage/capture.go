package stage

import (
	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/fetch"
)

// truncated maps the reasons for the end of a body to values of WARC-Truncated.
var truncated = map[fetch.Kind]string{
	fetch.Whole:         "",
	fetch.CutLength:     "length",
	fetch.CutTime:       "time",
	fetch.CutSlow:       "time",
	fetch.CutDisconnect: "disconnect",
}

// Capture converts a response for the archive, which keeps the bytes as they were sent.
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
		Rebuilt:   !resp.HeadExact,
	}
	if resp.TLS != nil {
		c.TLS, c.CipherSuite = resp.TLS.Version, resp.TLS.CipherSuite
	}
	return c
}

// Keep writes a response to an archive. If the site states anything about the use of the page, a
// metadata record with that follows. A nil archive keeps nothing.
func Keep(store *archive.Archive, resp *fetch.Response, stated string) error {
	if store == nil {
		return nil
	}
	at, err := store.Append(Capture(resp))
	if err != nil || stated == "" {
		return err
	}
	_, err = store.AppendMetadata(at, warc.Field{Name: "ai-preferences", Value: stated})
	return err
}
