package archive

import (
	"sync"

	"go.etcd.io/bbolt"
)

// maxIdle bounds the transactions at rest. More goroutines than that rarely ask at one instant.
const maxIdle = 64

// txPool keeps read transactions between two commits, as beginning one costs as much as finding a
// key. Nothing may be committed while there are any: the pages that they see could not be used
// again, and the file could not grow. Its methods are safe for concurrent use.
type txPool struct {
	mu   sync.Mutex
	idle []*readTx
}

// readTx is a read transaction with a cursor, for one goroutine at a time.
type readTx struct {
	tx     *bbolt.Tx
	cursor *bbolt.Cursor
}

// take returns a transaction that sees the last commit.
func (p *txPool) take(db *bbolt.DB) (*readTx, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		t := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return t, nil
	}
	p.mu.Unlock()
	tx, err := db.Begin(false)
	if err != nil {
		return nil, err
	}
	t := &readTx{tx: tx}
	defer func() {
		if t.cursor == nil { // a broken page: one that is left open would keep the index from closing
			_ = tx.Rollback()
		}
	}()
	t.cursor = tx.Bucket(entriesBucket).Cursor()
	return t, nil
}

// put takes a transaction back. One that met a broken page is not used again.
func (p *txPool) put(t *readTx, sound bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sound && len(p.idle) < maxIdle {
		p.idle = append(p.idle, t)
		return
	}
	_ = t.tx.Rollback() // only says that it has ended
}

// end ends all, before something is committed.
func (p *txPool) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.idle {
		_ = t.tx.Rollback() // only says that it has ended
	}
	p.idle = p.idle[:0]
}
