package stage

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPorts(t *testing.T) {
	const plain, secure, odd, other = "http://a.example/", "https://a.example/x", "http://a.example:81/",
		"https://b.example/"
	for _, tt := range []struct {
		name     string
		answered []string
		refused  []string // the last one is tested, the others come a minute apart before it
		own      bool
	}{
		{"the others are unknown", nil, []string{secure}, true},
		{"another port answers", []string{plain}, []string{secure}, true},
		{"both answered", []string{plain, secure}, []string{secure}, true},
		{"again, but not soon", []string{plain}, []string{secure, secure}, true},
		{"the only port that ever answered", []string{plain}, []string{plain}, false},
		{"all ports", nil, []string{plain, secure}, false},
		{"all of three", nil, []string{plain, secure, odd}, false},
		{"one of another host", nil, []string{other, secure}, true},
	} {
		var p Ports
		now, own := time.Now(), false
		for _, url := range tt.answered {
			p.Answered(url)
		}
		for _, url := range tt.refused {
			now = now.Add(time.Minute)
			own = p.Refused(url, now, time.Minute)
		}
		require.Equal(t, tt.own, own, tt.name)
	}
}

func TestClosedPortIsForgivenOnceInAWhile(t *testing.T) {
	var p Ports
	now := time.Now()
	p.Answered("http://a.example/")
	require.True(t, p.Refused("https://a.example/", now, time.Minute))
	require.False(t, p.Refused("https://a.example/", now.Add(time.Minute-1), time.Minute))
	require.True(t, p.Refused("https://a.example/", now.Add(time.Minute), time.Minute))

	p.Answered("https://a.example/")
	require.True(t, p.Refused("http://a.example/", now.Add(time.Hour), time.Minute), "it is open again")
}

func TestPortsAreBounded(t *testing.T) {
	var p Ports
	for n := range maxPortHosts + 10 {
		p.Answered(fmt.Sprintf("http://h%d.example/", n))
	}
	require.Len(t, p.hosts, maxPortHosts)
}

func TestPortOf(t *testing.T) {
	for url, want := range map[string]portSet{
		"http://a.example/x:1": 1, "https://a.example/": 2, "http://a.example:81/": 4,
		"https://[::1]/": 2, "http://[::1]:81/": 4,
	} {
		require.Equal(t, want, portOf(url), url)
	}
}
