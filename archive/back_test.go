package archive

import (
	"bytes"
	"encoding/base32"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// TestTheBodyIsFarBack: neither failures nor other bodies hide the one that a record of another program
// refers to without a date.
func TestTheBodyIsFarBack(t *testing.T) {
	const between = 40
	unchanged := response("http://a.test/", minuteOf(between+1), unchangedHead)
	unchanged.Type, unchanged.Profile = "revisit", warc.ProfileNotModified
	outage := []warc.Head{response("http://a.test/", minuteOf(0), okHead+"body")}
	for i := 1; i <= between; i++ {
		outage = append(outage, response("http://a.test/", minuteOf(i), "HTTP/1.1 503 X\r\nContent-Type: text/plain\r\n\r\ndown"))
	}
	var bodies []warc.Head
	for i := range between {
		h := response("http://a.test/", minuteOf(i), okHead+fmt.Sprint("body", i))
		digest := base32.StdEncoding.EncodeToString(fmt.Appendf(nil, "%020d", i))
		h.Extra = []warc.Field{{Name: "WARC-Payload-Digest", Value: "sha1:" + digest}}
		bodies = append(bodies, h)
	}
	again := response("http://a.test/", minuteOf(between+1), okHead)
	again.Type, again.Profile, again.Extra = "revisit", warc.ProfileIdentical, bodies[0].Extra
	for name, heads := range map[string][]warc.Head{"outage": append(outage, unchanged), "bodies": append(bodies, again)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var file bytes.Buffer
			encodeAll(t, &file, warc.Gzip, heads...)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "foreign.warc.gz"), file.Bytes(), 0o600))
			a := openDir(t, dir, Options{})
			defer a.Close()
			v, err := a.At("http://a.test/", time.Time{})
			require.NoError(t, err)
			_, err = a.Body(v)
			require.NoError(t, err)
		})
	}
}
