package clients

import (
	"context"
	"fmt"
	"time"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/scheduler"
)

// A frontier is the URL Frontier of one crawl.
type frontier struct {
	seen  *dedupe.Filter
	queue *scheduler.Scheduler[string]
}

// put is PutURLs with discovered items.
func (f frontier) put(links ...string) error {
	for _, link := range links {
		url, err := weburl.Canonical(link)
		if err != nil || !f.seen.Add(url) {
			continue
		}
		if err := f.queue.Add(scheduler.Task[string]{Host: weburl.Host(url), Item: url}); err != nil {
			return err // the queue is full
		}
	}
	return nil
}

// crawl is GetURLs, and PutURLs with known items. A lease permits one request to a host that may be
// visited now. It ends when the outcome is reported.
func (f frontier) crawl(ctx context.Context, visit func(url string) (scheduler.Outcome, time.Time)) error {
	for lease, err := range f.queue.Leases(ctx) {
		if err != nil {
			return err
		}
		go func() {
			outcome, refetchable := visit(lease.Item())
			if refetchable.IsZero() {
				lease.Done(outcome)
			} else {
				lease.Requeue(outcome, refetchable)
			}
		}()
	}
	return nil
}

func Example_frontier() {
	f := frontier{dedupe.New(dedupe.Options{}), scheduler.New[string](scheduler.Options{HostDelay: time.Millisecond})}
	err := f.put("https://example.org/", "https://EXAMPLE.org:443/#top", "https://example.org/news")
	f.queue.SetHost("example.org", scheduler.Host{Delay: 2 * time.Millisecond}) // SetDelay
	fmt.Println(err, f.queue.Stats().Queued)

	visits := map[string]int{}
	err = f.crawl(context.Background(), func(url string) (scheduler.Outcome, time.Time) {
		visits[url]++ // one host, one lease at a time
		fmt.Println(visits[url], url)
		outcome := scheduler.Outcome{Start: time.Now(), Status: 200}
		if visits[url] == 2 {
			return outcome, time.Time{} // not again
		}
		return outcome, time.Now().Add(time.Millisecond)
	})
	fmt.Println(err)
	// Output:
	// <nil> 2
	// 1 https://example.org/
	// 1 https://example.org/news
	// 2 https://example.org/
	// 2 https://example.org/news
	// <nil>
}
