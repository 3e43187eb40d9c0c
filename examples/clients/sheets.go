package clients

import (
	"errors"
	"strings"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/scheduler"
)

// sheets are settings by prefix of a SURT without scheme, such as "com,example,". An empty prefix is
// for all hosts.
type sheets map[string]scheduler.Host

// add queues a URL, after setting what the longest prefix says about its host.
func (s sheets) add(queue *scheduler.Scheduler[string], url string) error {
	surt, longest := weburl.SURT(url), ""
	for prefix := range s {
		if strings.HasPrefix(surt, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	host := weburl.Host(url)
	return errors.Join(
		queue.SetHost(host, s[longest]),
		queue.Add(scheduler.Task[string]{Host: host, Item: url}))
}
