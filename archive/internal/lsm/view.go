package lsm

import (
	"bytes"
	"iter"
	"sync/atomic"
)

// set is an immutable list of runs, oldest first. It keeps their files open.
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

// view is the state that a reader uses: the memtables, newest first, and the runs.
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

// Neighbors are the pairs before and after a key that have its prefix. The zero Neighbors is ready
// to use, by one goroutine at a time. Reuse saves allocations.
type Neighbors struct {
	Below Pair   // the greatest below the key
	Next  []byte // the least key that is not below it

	key    []byte
	prefix []byte
	hash   uint64
}

// below records a pair if it is greater than the recorded one.
func (n *Neighbors) below(p *Pair) {
	if len(p.Key) > 0 && bytes.HasPrefix(p.Key, n.prefix) && bytes.Compare(p.Key, n.Below.Key) > 0 {
		n.Below.set(p.Key, p.Value)
	}
}

// next records a key if it is less than the recorded one.
func (n *Neighbors) next(p *Pair) {
	if bytes.HasPrefix(p.Key, n.prefix) && (len(n.Next) == 0 || bytes.Compare(p.Key, n.Next) < 0) {
		n.Next = append(n.Next[:0], p.Key...)
	}
}

// Around finds the neighbors of a key. Its prefix has that length, see [Options].
func (t *Tree) Around(n *Neighbors, key []byte, prefix int) error {
	n.Below.clear()
	n.Next = n.Next[:0]
	n.key, n.prefix, n.hash = key, key[:prefix], hashOf(key[:prefix])
	v, err := t.view()
	if err != nil {
		return err
	}
	defer v.set.release(t)
	// Newest first: of two pairs with the same key, the first one counts.
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

// source iterates over sorted pairs.
type source interface {
	current() *Pair // nil at the end
	advance() error
}

// Scan returns a single-use iterator over the pairs with keys in [low, high), in key order. A pair
// is valid until the next one. An error comes last, with a zero pair. Pairs put before the first
// step are included. Pairs put during the iteration may be.
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

// scanRuns returns scans of runs, newest first.
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

// merge visits the pairs of all sources in key order until visit returns false. If several sources
// have a key, the first one counts.
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
				continue // it advances last, because that overwrites least
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
