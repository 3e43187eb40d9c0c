package fetch_test

import (
	"testing"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/weburl"
	"github.com/stretchr/testify/require"
)

// FuzzRequestURI checks that the request target is the path and query of the URL, byte for byte,
// alone or after the scheme and host that make it absolute.
func FuzzRequestURI(f *testing.F) {
	f.Add("http://a.test//x/%zz?y?#z")
	f.Add("https://u:p@[::1]:8080?")
	f.Add("http://a.test/%2e%2E//;a=b&%")
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := fetch.RequestURI(raw)
		if err != nil {
			return
		}
		u, err := weburl.Parse(raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := u.Path
		if u.HasQuery {
			want += "?" + u.Query
		}
		host := u.Host
		if u.Port != "" {
			host += ":" + u.Port
		}
		if got != want && got != u.Scheme+"://"+host+want {
			t.Errorf("RequestURI(%q) = %q, want %q", raw, got, want)
		}
	})
}

func TestTruncationsAreWords(t *testing.T) {
	require.Equal(t, "whole", fetch.Whole.String())
	// WARC 1.1 defines these words, so an archive may write them unchanged.
	require.Equal(t, "length time disconnect",
		fetch.CutLength.String()+" "+fetch.CutTime.String()+" "+fetch.CutDisconnect.String())
}
