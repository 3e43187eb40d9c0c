package table

import (
	"bytes"
	"runtime"
	"slices"
)

// A Source gives entries in the order of their keys.
type Source interface {
	// Next returns the next entry, valid until the next call. After the last one, key is nil.
	Next() (key, value []byte, err error)
}

// A Merger merges sources. If several have a key, it gives the entry of the first one. It is not
// safe for concurrent use.
type Merger struct {
	heads []head // at most a dozen, so a heap would not be faster
	least int    // index of the current entry
	ties  []int  // other heads with its key
}

type head struct {
	Source
	key, value []byte
}

// NewMerger returns a merger at the first entry. The newest source comes first.
func NewMerger(sources ...Source) (*Merger, error) {
	m := &Merger{}
	for _, s := range sources {
		h := head{Source: s}
		if err := h.next(); err != nil {
			return nil, err
		}
		if h.key != nil {
			m.heads = append(m.heads, h)
		}
	}
	m.find()
	return m, nil
}

func (h *head) next() (err error) {
	h.key, h.value, err = h.Next()
	return err
}

// find finds the entry with the smallest key.
func (m *Merger) find() {
	m.least, m.ties = 0, m.ties[:0]
	for i := 1; i < len(m.heads); i++ {
		switch order := bytes.Compare(m.heads[i].key, m.heads[m.least].key); {
		case order < 0:
			m.least, m.ties = i, m.ties[:0]
		case order == 0:
			m.ties = append(m.ties, i)
		}
	}
}

// Entry returns the current entry, valid until Next. After the last one, key is nil.
func (m *Merger) Entry() (key, value []byte) {
	if len(m.heads) == 0 {
		return nil, nil
	}
	h := &m.heads[m.least]
	return h.key, h.value
}

// Next moves to the next key.
func (m *Merger) Next() error {
	ended := false
	for _, i := range append(m.ties, m.least) {
		if err := m.heads[i].next(); err != nil {
			return err
		}
		ended = ended || m.heads[i].key == nil
	}
	if ended {
		m.heads = slices.DeleteFunc(m.heads, func(h head) bool { return h.key == nil })
	}
	m.find()
	return nil
}

// A job is a merge of the runs before its output.
type job struct {
	inputs int
	low    []byte // entries below it are in the output

	// What follows is lost at a restart or an error; the job then goes on at low.
	merger *Merger // nil before the first step
	view   *view   // of its sources
	oldest bool    // there are no older runs
	writer *segmentWriter
	hashes []uint64 // a buffer
}

// abort gives up the unfinished segment.
func (j *job) abort() {
	if j.writer != nil {
		j.writer.discard()
	}
	if j.view != nil {
		j.view.release()
	}
	j.merger, j.view, j.writer = nil, nil, nil
}

// Step does a small part of a merge if there is anything to merge, and reports whether there is
// more to do. It takes milliseconds, except for the one that completes a segment, which it syncs.
//
// After an error, the next Step repeats the segment.
func (t *Table) Step() (more bool, err error) {
	t.mu.Lock()
	var j *job
	if !t.closed {
		j = t.plan()
	}
	if j == nil {
		t.mu.Unlock()
		return false, nil
	}
	if j.merger == nil {
		err = t.start(j)
	}
	t.mu.Unlock()
	done := false
	if err == nil {
		done, err = t.advance(j)
	}
	var made *segment
	if err == nil && (done || j.writer != nil && j.writer.count >= t.Segment) {
		made, err = t.complete(j)
	} else if err == nil {
		return true, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		j.abort()
		return false, err
	}
	t.publish(j, made, done)
	return true, nil
}

// plan returns the merge to continue, which it may have to begin. It prefers the newest runs: they
// are the shortest, so merging them reduces the number of runs soonest. It requires that t.mu is
// held.
func (t *Table) plan() *job {
	runs, sum, first := t.view.runs, int64(0), -1
	i := len(runs) - 1
	for ; i >= 0 && runs[i].job == nil; i-- {
		if n := runs[i].count(); i < len(runs)-1 && n < sum {
			first = i
		}
		sum += runs[i].count()
	}
	switch {
	case first >= 0:
		j := &job{inputs: len(runs) - first}
		t.replace(append(slices.Clip(runs), &run{job: j}))
		return j
	case i >= 0:
		return runs[i].job
	}
	return nil
}

// start opens the sources of a merge. It requires that t.mu is held.
func (t *Table) start(j *job) (err error) {
	at := t.output(j)
	var sources []Source
	for _, r := range slices.Backward(t.view.runs[at-j.inputs : at]) {
		sources = append(sources, r.from(j.low))
	}
	j.oldest = at == j.inputs
	j.view = newView(slices.Clone(t.view.runs[at-j.inputs : at]))
	j.merger, err = NewMerger(sources...)
	return err
}

// output returns the index of the output of a merge.
func (t *Table) output(j *job) int {
	return slices.IndexFunc(t.view.runs, func(r *run) bool { return r.job == j })
}

// yieldEvery is the number of entries between two yields to other goroutines: a look-up should not
// wait for the end of our time slice.
const yieldEvery = 256

// advance merges some entries, and reports whether these were the last ones.
func (t *Table) advance(j *job) (done bool, err error) {
	for n := int64(1); n <= t.Steps; n++ {
		key, value := j.merger.Entry()
		if key == nil {
			return true, nil
		}
		if j.writer != nil && j.writer.count >= t.Segment {
			return false, nil
		}
		if !j.oldest || t.Dead == nil || !t.Dead(value) {
			if j.writer == nil {
				if j.writer, err = t.create(j.hashes); err != nil {
					return false, err
				}
			}
			j.writer.add(key, value)
		}
		if err := j.merger.Next(); err != nil {
			return false, err
		}
		if n%yieldEvery == 0 {
			runtime.Gosched()
		}
	}
	key, _ := j.merger.Entry()
	return key == nil, nil
}

// complete finishes the segment. It returns nil if that would be empty.
func (t *Table) complete(j *job) (*segment, error) {
	w := j.writer
	if w == nil {
		return nil, nil
	}
	j.hashes, j.writer = w.hashes, nil // finish removes the file if it fails
	return w.finish()
}

// publish adds a segment to the output of a merge, and drops what it has passed from the inputs. It
// requires that t.mu is held.
func (t *Table) publish(j *job, made *segment, done bool) {
	runs := slices.Clone(t.view.runs)
	at := t.output(j)
	out := &run{segments: slices.Clone(runs[at].segments), job: j}
	if made != nil {
		out.segments = append(out.segments, made)
	}
	if done {
		for _, r := range runs[at-j.inputs : at] {
			t.retire(r.segments)
		}
		out.job = nil
		runs = slices.Replace(runs, at-j.inputs, at+1, out)
		if len(out.segments) == 0 {
			runs = slices.DeleteFunc(runs, func(r *run) bool { return r == out })
		}
		t.replace(runs)
		j.abort()
		return
	}
	key, _ := j.merger.Entry()
	j.low = bytes.Clone(key)
	for i := at - j.inputs; i < at; i++ {
		segments := runs[i].segments
		passed := 0
		for passed+1 < len(segments) && bytes.Compare(segments[passed+1].first, j.low) <= 0 {
			passed++
		}
		t.retire(segments[:passed])
		runs[i] = &run{segments: segments[passed:], low: j.low}
	}
	runs[at] = out
	t.replace(runs)
	j.view.release() // what the sources have passed would stay on disk otherwise
	j.view = newView(runs[at-j.inputs : at])
}

// retire keeps segments until no state names them.
func (t *Table) retire(segments []*segment) {
	for _, s := range segments {
		s.refs.Add(1)
		t.obsolete = append(t.obsolete, s)
	}
}
