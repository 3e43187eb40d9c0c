package crawl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// Settings are the sum of the operator's instructions since the crawl was created. The broker
// stores the latest ones, and each process follows them within moments. A process that starts later
// follows them, too.
type Settings struct {
	Paused bool     `json:",omitempty"` // no requests are made
	Drain  []string `json:",omitempty"` // names or ids of processes that must end; "*" means all

	Deny   []string                 `json:",omitempty"` // entries of urlfilter.List
	Delays map[string]time.Duration `json:",omitempty"` // minimum delays of hosts; 0 cancels an earlier one
	Scope  string                   `json:",omitempty"` // replaces that of the options; "" does not
	Seeds  []string                 `json:",omitempty"` // in addition to those of the options, for the scope
}

const settingsKey = "settings"

// filter returns the filter of a crawl with these settings.
func (o *Options) filter(s Settings) (*stage.Filter, error) {
	f := &stage.Filter{
		Format: urlfilter.Format{AnySuffix: o.Loopback},
		Scope:  &urlfilter.Scope{}, Deny: &urlfilter.List{}, MaxDepth: o.MaxDepth,
	}
	if err := f.Scope.Reach.UnmarshalText([]byte(cmp.Or(s.Scope, o.Scope))); err != nil {
		return nil, err
	}
	for _, seed := range slices.Concat(o.Seeds, s.Seeds) {
		f.Scope.Add(seed)
	}
	deny := strings.Join(slices.Concat(o.Deny, s.Deny), "\n")
	return f, f.Deny.Reload(strings.NewReader(deny), "deny list")
}

// drains reports whether a process must end, by its name or the id of its session.
func (s *Settings) drains(name string) bool {
	return slices.Contains(s.Drain, "*") || slices.Contains(s.Drain, name)
}

// Settings returns the operator's settings and their revision.
func (c *Crawl) Settings(ctx context.Context) (s Settings, revision uint64, err error) {
	revision, value, err := c.Control.Look(ctx, settingsKey)
	if err == nil && value != nil {
		err = json.Unmarshal(value, &s)
	}
	if err != nil {
		return s, 0, fmt.Errorf("crawl: control: %w", err)
	}
	return s, revision, nil
}

// Change changes the settings and returns their revision. Concurrent changes do not overwrite each
// other.
func (c *Crawl) Change(
	ctx context.Context, change func(s *Settings) error,
) (revision uint64, err error) {
	for ctx.Err() == nil {
		s, before, err := c.Settings(ctx)
		if err != nil {
			return 0, err
		}
		old := s.Scope
		if err := change(&s); err != nil {
			return 0, err
		}
		if _, err := c.filter(s); err != nil {
			return 0, err
		}
		if s.Scope != old && !c.keepsSeedsOf(s.Scope) {
			return 0, fmt.Errorf("crawl: control: a crawl created with scope %s lacks the seeds that scope %q goes by: "+
				"create another crawl", c.Scope, s.Scope)
		}
		value, err := json.Marshal(s)
		if err != nil {
			return 0, fmt.Errorf("crawl: control: %w", err)
		}
		if len(value) > maxSettings {
			return 0, fmt.Errorf("crawl: control: %d bytes of seeds and hosts, at most %d fit: "+
				"widen the scope instead, or create a crawl with -seeds", len(value), maxSettings)
		}
		if ok, revision := c.Control.Try(ctx, settingsKey, value, before); ok {
			return revision, nil
		}
	}
	return 0, ctx.Err()
}

// maxSettings is below the size limit of a value of a table.
const maxSettings = 900 << 10

// A followed has the settings that a process follows. It is immutable.
type followed struct {
	Settings
	revision uint64
	filter   *stage.Filter
	changed  chan struct{} // closed when there are later ones
}

// errDrained ends the run of a process.
var errDrained = errors.New("crawl: drained by the operator")

// obeySettings follows the settings until ctx ends. It calls end with the reason if the partitions
// must be given back.
func (w *Worker) obeySettings(ctx context.Context, end func(why error)) {
	w.Control.Watch(ctx, func(e *jet.Entry) {
		if e == nil || e.Key != settingsKey || e.Value == nil {
			return
		}
		var settings Settings
		err := json.Unmarshal(e.Value, &settings)
		if err == nil {
			err = w.follow(settings, e.Revision, end)
		}
		if err != nil {
			w.opts.Log.Error("cannot follow the operator's settings", "err", err)
		}
	})
}

// follow adopts settings, unless the process already follows later ones.
func (w *Worker) follow(settings Settings, revision uint64, end func(why error)) error {
	f, err := w.filter(settings)
	if err != nil {
		return err
	}
	before := w.settings.Load()
	if revision <= before.revision {
		return nil
	}
	w.settings.Store(&followed{settings, revision, f, make(chan struct{})})
	close(before.changed)
	w.opts.Log.Info("control", "revision", revision, "paused", settings.Paused,
		"deny", len(settings.Deny), "delays", len(settings.Delays),
		"drain", strings.Join(settings.Drain, " "))
	if settings.drains(w.opts.Name) || settings.drains(w.member.ID()) {
		w.opts.Log.Info("drained: this process ends; \"cluster resume\" allows it to start again")
		end(errDrained)
	}
	return nil
}

// unpaused waits while the crawl is paused, and reports whether ctx is still active.
func (w *Worker) unpaused(ctx context.Context) bool {
	for ctx.Err() == nil {
		settings := w.settings.Load()
		if !settings.Paused {
			return true
		}
		select {
		case <-ctx.Done():
		case <-settings.changed:
		}
	}
	return false
}
