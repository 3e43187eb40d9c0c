package crawl

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// A Place is the location of a process's archive. The broker remembers it even after the process is
// dead. It is a plain value, and not safe for concurrent use.
type Place struct {
	Machine string    // its host name
	Dir     string    // the absolute path there
	Name    string    // of the process
	Since   time.Time // when a process last started there
}

const placePrefix = "archive."

// announce tells the broker where the archive of this process is.
func (w *Worker) announce(ctx context.Context) error {
	if w.store == nil {
		return nil
	}
	machine, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("crawl: name of this machine: %w", err)
	}
	dir, err := filepath.Abs(w.opts.Dir)
	if err != nil {
		return fmt.Errorf("crawl: directory of the archive: %w", err)
	}
	value, err := json.Marshal(Place{machine, dir, w.opts.Name, time.Now().UTC()})
	if err != nil {
		return fmt.Errorf("crawl: place of the archive: %w", err)
	}
	key := fmt.Sprintf("%s%016x", placePrefix, message.Hash(machine+"\n"+dir))
	return w.Control.Put(ctx, key, value)
}

// Places returns the archives of all processes that ever took part.
func (c *Crawl) Places(ctx context.Context) (places []Place, err error) {
	values, err := c.Control.Under(ctx, placePrefix)
	for _, value := range values {
		var p Place
		if err := json.Unmarshal(value, &p); err != nil {
			return nil, fmt.Errorf("crawl: place of an archive: %w", err)
		}
		places = append(places, p)
	}
	slices.SortFunc(places, func(a, b Place) int {
		return strings.Compare(a.Machine+a.Dir, b.Machine+b.Dir)
	})
	return places, err
}
