package replay

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Chromium opens a signed exchange in a frame, and asks the live web for its certificate, whatever the
// policy. In Firefox, text/rdf is XML.
func TestFramesOpenOnlyWhatIsShown(t *testing.T) {
	const url = "http://a.example/"
	for kind, want := range map[string]string{
		"application/signed-exchange;v=b3": "application/octet-stream", "message/rfc822": "application/octet-stream",
		"text/rdf": "text/plain; charset=utf-8", "application/json": "application/json", "image/png": "image/png",
	} {
		v := New(archiveOf(t, typed(monday, url, kind, "x")), Options{})
		for _, dest := range []string{"iframe", "frame", "object", "embed"} {
			w := ask(t, v, v.replayOf(monday, url), "Sec-Fetch-Dest", dest)
			require.Equal(t, want, w.Header().Get("Content-Type"), dest)
		}
	}
}
