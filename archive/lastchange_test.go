package archive

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// A new index reads some versions before what they refer to, or before the version between. It knows the last change
// all the same: a 304 confirms that, and the same body once more is no change.
func TestLastChangeInANewIndex(t *testing.T) {
	first, second := strings.Repeat("first ", 300), strings.Repeat("second ", 300)
	hours := func(n int) time.Time { return someTime.Add(time.Duration(n) * time.Hour) }
	put := func(a *Archive, url string, at int, status int, text string) {
		_, err := a.Append(visit{url, hours(at), status, text}.capture())
		require.NoError(t, err)
	}
	for name, fill := range map[string]func(a *Archive, dir string){
		"moved": func(a *Archive, _ string) {
			put(a, "http://b.test/", 0, 200, second)
			put(a, "http://a.test/", 1, 200, first)
			put(a, "http://a.test/", 2, 200, second)
			put(a, "http://a.test/", 3, 200, first)
			_, err := a.Erase(t.Context(), Selection{Host: "b.test"}, "asked for")
			require.NoError(t, err)
		},
		"imported": func(a *Archive, _ string) {
			_, err := a.Import(writeForeign(t, t.TempDir(), "x.warc.gz", foreignPage("http://a.test/", hours(1), 200, first)))
			require.NoError(t, err)
			put(a, "http://a.test/", 2, 200, first)
			put(a, "http://a.test/", 3, 304, "")
		},
		"undated": func(_ *Archive, dir string) {
			one := foreignPage("http://a.test/", hours(1), 200, first)
			again := foreignPage("http://a.test/", hours(3), 200, "")
			again.head.Type, again.head.Payload, again.head.Profile = "revisit", one.head.Payload, warc.ProfileIdentical
			writeForeign(t, dir, "x.warc.gz", one, foreignPage("http://a.test/", hours(2), 200, second), again)
		},
	} {
		dir := t.TempDir()
		a := openDir(t, dir, Options{Share: true})
		fill(a, dir)
		require.NoError(t, a.Close())
		a = openDir(t, dir, Options{Share: true, Reindex: true})
		put(a, "http://a.test/", 4, 304, "")
		put(a, "http://a.test/", 5, 200, first)
		for _, v := range []time.Time{hours(4), hours(5)} {
			v, err := a.At("http://a.test/", v)
			require.NoError(t, err)
			require.Equal(t, first, body(t, a, v), name)
			require.Equal(t, Unchanged, v.Kind, name)
		}
		faults, _ := verify(t, a)
		require.Empty(t, faults, name)
		require.NoError(t, a.Close())
	}
}

// The whole body after a part of it with the same bytes, or after a redirect with them, is a change, also in a new
// index: a later 304 does not confirm the part, or the redirect.
func TestTheSameBytesOfAnotherAnswerAreAChange(t *testing.T) {
	text := strings.Repeat("some text ", 300)
	for _, before := range []struct {
		status    int
		truncated string
	}{{200, "disconnect"}, {301, ""}} {
		dir := t.TempDir()
		a := openDir(t, dir, Options{Share: true})
		put := func(url string, hours, status int, truncated, text string) {
			c := visit{url, someTime.Add(time.Duration(hours) * time.Hour), status, text}.capture()
			c.Truncated = truncated
			_, err := a.Append(c)
			require.NoError(t, err)
		}
		put("http://a.test/", 1, 200, "", text)
		put("http://b.test/", 2, before.status, before.truncated, text)
		put("http://b.test/", 3, 200, "", text)
		require.NoError(t, a.Close())
		a = openDir(t, dir, Options{Share: true, Reindex: true})
		put("http://b.test/", 4, 304, "", "")
		versions, err := a.Versions("http://b.test/")
		require.NoError(t, err)
		require.Len(t, versions, 3)
		require.Equal(t, Changed, versions[1].Kind)
		require.False(t, versions[2].Truncated)
		require.Equal(t, 200, versions[2].ContentStatus)
		require.NoError(t, a.Close())
	}
}

// A failure is indexed before a change that was found earlier, and that is imported. A 304 after it confirms that
// change, unless another 304 has confirmed the one before since.
func TestLastChangeBeforeAFailure(t *testing.T) {
	hours := func(n int) time.Time { return someTime.Add(time.Duration(n) * time.Hour) }
	for _, confirmed := range []bool{false, true} {
		dir, want := t.TempDir(), "between"
		a := openDir(t, dir, Options{})
		put := func(at, status int, text string) {
			_, err := a.Append(visit{"http://a.test/", hours(at), status, text}.capture())
			require.NoError(t, err)
		}
		put(1, 200, "first")
		put(3, 503, "failed")
		if confirmed {
			put(4, 304, "")
			put(5, 503, "failed")
			want = "first"
		}
		page := foreignPage("http://a.test/", hours(2), 200, "between")
		_, err := a.Import(writeForeign(t, t.TempDir(), "x.warc.gz", page))
		require.NoError(t, err)
		put(6, 304, "")
		for range 2 {
			v, err := a.At("http://a.test/", hours(6))
			require.NoError(t, err)
			require.Equal(t, want, body(t, a, v))
			faults, _ := verify(t, a)
			require.Empty(t, faults)
			require.NoError(t, a.Close())
			a = openDir(t, dir, Options{Reindex: true})
		}
		require.NoError(t, a.Close())
	}
}
