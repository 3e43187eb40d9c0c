package lsm

import (
	"bytes"
	"iter"
	"sync/atomic"
)

// set is the runs of one moment, oldest first. It keeps their files from being closed.
type set struct {
	runs []*run
	refs atomic.Int64
}

func newSet(runs []*run) *set {
	for _, r := range runs {
		r.refs.Add(1)
	}
	s := &set{runs: runs}
	s.refs.Store(1)
	return s
}

func (s *set) release(t *Tree) {
	if s.refs.Add(-1) > 0 {
		return
	}
	for _, r := range s.runs {
		_ = r.release(t.fs) // it was only read
	}
}

// view is what a reader sees: the memtables, newest first, and the runs.
type view struct {
	tables [2]*memtable
	set    *set
}

func (t *Tree) view() (view, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return view{}, ErrClosed
	}
	t.set.refs.Add(1)
	return view{[2]*memtable{t.active, t.frozen}, t.set}, nil
}

// Neighbors are the pairs around a key, of those that have its prefix. The zero Neighbors is ready
// to use, by one goroutine at a time; using it again saves memory.
type Neighbors struct {
	Below Pair   // the greatest below the key
	Next  []byte // the least key that is not below it

	key    []byte
	prefix []byte
	hash   uint64
}

// below takes a pair, unless it has one above it.
func (n *Neighbors) below(p *Pair) {
	if len(p.Key) > 0 && bytes.HasPrefix(p.Key, n.prefix) && bytes.Compare(p.Key, n.Below.Key) > 0 {
		n.Below.set(p.Key, p.Value)
	}
}

// next takes a key, unless it has one below it.
func (n *Neighbors) next(p *Pair) {
	if bytes.HasPrefix(p.Key, n.prefix) && (len(n.Next) == 0 || bytes.Compare(p.Key, n.Next) < 0) {
		n.Next = append(n.Next[:0], p.Key...)
	}
}

// Around finds the neighbors of a key, of which the first bytes are the prefix of a filter.
func (t *Tree) Around(n *Neighbors, key []byte, prefix int) error {
	n.Below.clear()
	n.Next = n.Next[:0]
	n.key, n.prefix, n.hash = key, key[:prefix], hashOf(key[:prefix])
	v, err := t.view()
	if err != nil {
		return err
	}
	defer v.set.release(t)
	// The newest come first: of two pairs with the same key the first one stays.
	for _, table := range v.tables {
		if table != nil {
			table.around(n)
		}
	}
	for i := len(v.set.runs) - 1; i >= 0; i-- {
		if err := v.set.runs[i].around(n); err != nil {
			return err
		}
	}
	return nil
}

// source is a sorted list of pairs that is walked through.
type source interface {
	current() *Pair // nil at the end
	advance() error
}

// Scan returns a single-use iterator over the pairs from low on and below high, in the order of
// their keys. A pair is valid until the next one. An error comes last, with a zero pair. Pairs put
// before the first step are included. Pairs put during the walk may be.
func (t *Tree) Scan(low, high []byte) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		v, err := t.view()
		if err != nil {
			yield(Pair{}, err)
			return
		}
		defer v.set.release(t)
		var sources []source
		for _, table := range v.tables {
			if table != nil {
				sources = append(sources, newMemScan(table, low))
			}
		}
		runs, err := scanRuns(v.set.runs, low)
		if err == nil {
			err = merge(append(sources, runs...), func(p *Pair) (bool, error) {
				return bytes.Compare(p.Key, high) < 0 && yield(*p, nil), nil
			})
		}
		if err != nil {
			yield(Pair{}, err)
		}
	}
}

// scanRuns returns walks through runs, the newest first.
func scanRuns(runs []*run, low []byte) (sources []source, err error) {
	for i := len(runs) - 1; i >= 0; i-- {
		s, err := newRunScan(runs[i], low)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// merge visits the pairs of all sources in the order of their keys, until visit returns false. Of
// equal keys, that of the first source counts.
func merge(sources []source, visit func(*Pair) (bool, error)) error {
	for {
		var least *Pair
		var from source
		for _, s := range sources {
			p := s.current()
			if p == nil || least != nil && bytes.Compare(p.Key, least.Key) >= 0 {
				continue
			}
			least, from = p, s
		}
		if least == nil {
			return nil
		}
		if more, err := visit(least); err != nil || !more {
			return err
		}
		for _, s := range sources {
			if s == from {
				continue // it goes on last, as least is its pair
			}
			if p := s.current(); p != nil && bytes.Equal(p.Key, least.Key) {
				if err := s.advance(); err != nil {
					return err
				}
			}
		}
		if err := from.advance(); err != nil {
			return err
		}
	}
}
