package clients

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/spinneret-go/spinneret/revisit"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/satstore"
)

// A pageState is the state of a page between two visits.
type pageState struct {
	History revisit.History
	Digest  [sha256.Size]byte
}

// recrawl visits all due pages, and the pages that it discovers. It is one round of Nutch's generate,
// fetch, parse and updatedb.
func recrawl(ctx context.Context, db *satstore.Store, client *http.Client) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	slots := make(chan struct{}, 1000) // pages waiting or in flight
	for found := true; found; {
		found = false
		var visits sync.WaitGroup
		for page, err := range db.Due(ctx, time.Now()) {
			if err != nil {
				fail(err)
				break
			}
			found, page = true, page.Detach()
			slots <- struct{}{}
			visits.Go(func() {
				if err := visit(ctx, db, client, page); err != nil {
					fail(err)
				}
				<-slots
			})
		}
		visits.Wait()
	}
	return errors.Join(context.Cause(ctx), db.Sync())
}

// visit fetches a page, adds what it links to, and sets the time of the next visit.
func visit(ctx context.Context, db *satstore.Store, client *http.Client, page *satstore.Record) error {
	var state pageState // stays zero for a new page, which has no data
	_ = json.Unmarshal(page.Data, &state)
	wait := 24 * time.Hour
	at, body, err := fetchPage(ctx, client, page.ID)
	now := time.Now()
	unreachable, _ := errors.AsType[*robots.UnreachableError](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // the page stays due
	case unreachable != nil: // its robots.txt
		wait = max(unreachable.Retry.Sub(now), time.Minute)
	case errors.Is(err, robots.ErrDisallowed):
		wait *= 30
	case err == nil:
		digest := sha256.Sum256(body)
		changed := digest != state.Digest
		state = pageState{state.History.Observe(revisit.Visit{At: now, Changed: changed}), digest}
		wait = revisit.Bayes{}.Next(state.History)
		if err := addLinks(db, at, body, now); err != nil {
			return err
		}
	}
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return page.Reschedule(now.Add(wait), data)
}

// addLinks adds the links of a page. The store skips known ones.
func addLinks(db *satstore.Store, at string, body []byte, now time.Time) error {
	var items []satstore.Item
	for link, err := range page.Links(body, at, "") {
		if err != nil {
			break // a page with too many links
		}
		url, err := weburl.Canonical(link.URL)
		if err == nil && link.Kind == page.Anchor && !link.NoFollow {
			items = append(items, satstore.Item{ID: url, At: now})
		}
	}
	_, err := db.AddBatch(items)
	return err
}

// fetchPage returns a page and its final URL.
func fetchPage(ctx context.Context, client *http.Client, url string) (at string, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", nil, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = errors.Join(err, errors.New(resp.Status))
	}
	return resp.Request.URL.String(), body, err
}
