package crawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
)

// A Word is the sum of the operator's instructions since the crawl was created. The broker stores
// the latest one, and each process follows it within moments. A process that starts later follows
// it, too.
type Word struct {
	Paused bool     `json:",omitempty"` // no requests are made
	Drain  []string `json:",omitempty"` // names or ids of processes that must end; "*" means all

	Deny   []string                 `json:",omitempty"` // entries of urlfilter.List
	Delays map[string]time.Duration `json:",omitempty"` // minimum delays of hosts
	Scope  string                   `json:",omitempty"` // replaces that of the options; "" does not
	Seeds  []string                 `json:",omitempty"` // in addition to those of the options, for the scope

	Options int `json:",omitempty"` // number of changes of the options
}

const wordKey = "word"

// drains reports whether a process must end, by its name or the id of its session.
func (w *Word) drains(name string) bool {
	return slices.Contains(w.Drain, "*") || slices.Contains(w.Drain, name)
}

// Word returns the operator's instructions and their revision.
func (c *Crawl) Word(ctx context.Context) (w Word, revision uint64, err error) {
	revision, value, err := c.Control.Look(ctx, wordKey)
	if err == nil && value != nil {
		err = json.Unmarshal(value, &w)
	}
	if err != nil {
		return w, 0, fmt.Errorf("crawl: control: %w", err)
	}
	return w, revision, nil
}

// Say changes the instructions and returns their revision. Concurrent changes do not overwrite each
// other.
func (c *Crawl) Say(ctx context.Context, change func(w *Word) error) (revision uint64, err error) {
	for ctx.Err() == nil {
		w, before, err := c.Word(ctx)
		if err != nil {
			return 0, err
		}
		if err := change(&w); err != nil {
			return 0, err
		}
		if _, err := c.filter(w); err != nil {
			return 0, err
		}
		value, err := json.Marshal(w)
		if err != nil {
			return 0, fmt.Errorf("crawl: control: %w", err)
		}
		if len(value) > maxWord {
			return 0, fmt.Errorf("crawl: control: %d bytes of seeds and hosts, at most %d fit: "+
				"widen the scope instead, or create a crawl with -seeds", len(value), maxWord)
		}
		if ok, revision := c.Control.Try(ctx, wordKey, value, before); ok {
			return revision, nil
		}
	}
	return 0, ctx.Err()
}

// maxWord is below the size limit of a value of a table.
const maxWord = 900 << 10

// Followers returns which processes follow the instructions of a revision, and which do not yet.
func (c *Crawl) Followers(ctx context.Context, revision uint64) (follow, lag []string, err error) {
	members, err := c.Members(ctx)
	for _, m := range members {
		if m.Word >= revision {
			follow = append(follow, m.ID)
		} else {
			lag = append(lag, m.ID)
		}
	}
	return follow, lag, err
}

// A followed is a word that a process follows. It is immutable.
type followed struct {
	Word
	revision uint64
	filter   *filter
	changed  chan struct{} // closed when a later one exists
}

// Reasons other than its context that end the run of a process.
var (
	errDrained = errors.New("crawl: drained by the operator")
	errReload  = errors.New("crawl: options have changed")
)

// obeyWord follows the operator's instructions until ctx ends. It calls end with the reason if the
// partitions must be given back.
func (w *Worker) obeyWord(ctx context.Context, end func(why error)) {
	w.Control.Watch(ctx, func(e *jet.Entry) {
		if e == nil || e.Key != wordKey || e.Value == nil {
			return
		}
		var word Word
		err := json.Unmarshal(e.Value, &word)
		if err == nil {
			err = w.follow(word, e.Revision, end)
		}
		if err != nil {
			w.opts.Log.Error("cannot follow the instructions of control", "err", err)
		}
	})
}

// follow adopts a word, unless the process already follows a later one.
func (w *Worker) follow(word Word, revision uint64, end func(why error)) error {
	f, err := w.filter(word)
	if err != nil {
		return err
	}
	before := w.word.Load()
	if revision <= before.revision {
		return nil
	}
	w.word.Store(&followed{word, revision, f, make(chan struct{})})
	close(before.changed)
	w.opts.Log.Info("control", "revision", revision, "paused", word.Paused, "deny", len(word.Deny),
		"delays", len(word.Delays), "drain", strings.Join(word.Drain, " "))
	switch {
	case word.drains(w.opts.Name) || word.drains(w.member.ID()):
		w.opts.Log.Info("drained: this process ends; \"cluster resume\" allows it to start again")
		end(errDrained)
	case word.Options != before.Options:
		end(errReload)
	}
	return nil
}

// unpaused waits while the crawl is paused, and reports whether ctx is still active.
func (w *Worker) unpaused(ctx context.Context) bool {
	for ctx.Err() == nil {
		word := w.word.Load()
		if !word.Paused {
			return true
		}
		select {
		case <-ctx.Done():
		case <-word.changed:
		}
	}
	return false
}
