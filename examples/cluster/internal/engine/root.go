package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// A Root is the stored value of a partition: the state or the location of its chunks, and the
// sequence of the last message of the stream that is part of it.
type Root struct {
	Epoch  uint64 // of the owner that wrote it
	Seq    uint64 // of the last message that is part of the state
	Marks  []byte // of the sources, see message.Marks
	Open   int    // items that wait for an answer
	Serial uint64 // counts the chunks that this owner has written
	Chunks []Chunk
	Sent   []Sent           `json:",omitempty"`
	Last   uint64           `json:",omitempty"` // the last message of the stream, as far as it was known
	Full   float64          `json:",omitempty"` // share of the stream's bound that was used
	Extra  []byte           `json:",omitempty"` // additional state of the module
	Counts map[string]int64 `json:",omitempty"` // for operators
}

// A Sent has the items of a partition for another one: how many there were, and the last ones, which
// the broker had not acknowledged.
type Sent struct {
	Dest
	Number uint64  // of the last item
	N      int     `json:",omitempty"` // items that were not acknowledged
	Items  []byte  `json:",omitempty"` // those, encoded, unless they are in chunks
	Chunks []Chunk `json:",omitempty"`
}

// SentTo returns the number of the last item for a partition.
func (r *Root) SentTo(d Dest) uint64 {
	for _, s := range r.Sent {
		if s.Dest == d {
			return s.Number
		}
	}
	return 0
}

// Waiting returns how many items for other partitions the broker had not acknowledged.
func (r *Root) Waiting() (n int) {
	for _, s := range r.Sent {
		n += s.N
	}
	return n
}

// A Chunk is a part of the state that is too big for the root. It is never overwritten.
type Chunk struct {
	Key  string
	Size int
}

// ReadRoots reads the roots of all partitions, by [RootKey]. However many they are, that is a few
// requests.
func ReadRoots(ctx context.Context, states *jet.Table) (map[string]Root, error) {
	values, err := states.Under(ctx, "root.")
	roots := make(map[string]Root, len(values))
	for key, value := range values {
		var r Root
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, fmt.Errorf("engine: %s: %w", key, err)
		}
		roots[key] = r
	}
	return roots, err
}

// RootKey names the root of a partition in the table of states.
func RootKey(m message.Module, part int) string { return fmt.Sprintf("root.%s.%d", m, part) }

// ReadRoot reads the root of a partition without owning it.
func ReadRoot(ctx context.Context, states *jet.Table, m message.Module, part int) (Root, error) {
	value, err := states.Get(ctx, RootKey(m, part))
	if err != nil || value == nil {
		return Root{}, err
	}
	var r Root
	if err := json.Unmarshal(value, &r); err != nil {
		return Root{}, fmt.Errorf("engine: root of %s %d: %w", m, part, err)
	}
	return r, nil
}

// A Keeper replaces the root of a partition that this process owns. It is not safe for concurrent
// use.
type Keeper struct {
	states *jet.Table
	cell   *jet.Cell
	claim  Claim
	Root   Root // as it was last stored, or is to be stored next
}

// Keep reads the root of a partition and writes it again under the claim's epoch, so that no
// previous owner can replace it. It fails with jet.ErrFenced if there is an owner of the same epoch
// or a later one.
func Keep(ctx context.Context, states *jet.Table, c Claim) (*Keeper, error) {
	for {
		k, err := newKeeper(ctx, states, c)
		if err != nil {
			return nil, err
		}
		// A previous owner that does not know yet that it was replaced may write between the two.
		// It has lost as soon as this write comes first; until then, its writes are progress.
		if err = k.Store(ctx); !errors.Is(err, jet.ErrFenced) {
			return k, err
		}
	}
}

// newKeeper returns a keeper of the existing root. The claim owns the root once it is stored.
func newKeeper(ctx context.Context, states *jet.Table, c Claim) (*Keeper, error) {
	cell, value, err := states.Cell(ctx, RootKey(c.Module, c.Part))
	if err != nil {
		return nil, err
	}
	k := &Keeper{states: states, cell: cell, claim: c}
	if value != nil {
		if err := json.Unmarshal(value, &k.Root); err != nil {
			return nil, k.unreadable(ctx, err)
		}
	}
	if k.Root.Epoch >= c.Epoch {
		return nil, fmt.Errorf("%w: root of epoch %d, claim of %d",
			jet.ErrFenced, k.Root.Epoch, c.Epoch)
	}
	// Keys of chunks contain the epoch: a previous owner cannot overwrite the chunks of this one.
	k.Root.Epoch, k.Root.Serial = c.Epoch, 0
	return k, nil
}

// Position returns where the previous owner stopped reading, and the last message of the stream.
func (k *Keeper) Position(ctx context.Context, bus *jet.Bus) (m message.Marks, last uint64, err error) {
	root := &k.Root
	if root.Marks != nil {
		if m, err = message.DecodeMarks(string(root.Marks)); err != nil {
			return m, 0, k.unreadable(ctx, err)
		}
	}
	level, err := bus.LevelFrom(ctx, k.claim.Module, k.claim.Part, root.Seq)
	// A broker that has lost its disk numbers messages from the start. The lost ones are gone; new
	// ones must not be taken for old ones.
	root.Seq = min(root.Seq, level.Last)
	return m, level.Last, err
}

// Store writes the root. It fails with jet.ErrFenced if the partition has a new owner.
func (k *Keeper) Store(ctx context.Context) error {
	if err := k.claim.Guard(); err != nil {
		return err
	}
	value, err := json.Marshal(k.Root)
	if err != nil {
		return fmt.Errorf("engine: encode root: %w", err)
	}
	return k.cell.Store(ctx, value)
}

// maxChunk is the size of a chunk, well below the limit of messages.
const maxChunk = 512 << 10

// maxInline bounds the items, for all partitions together, that are part of the root itself: there
// may be thousands of partitions, and a root has to fit into a message.
const maxInline = 64 << 10

// Commit stores the root with the content of an outbox, and then sends it.
func (k *Keeper) Commit(ctx context.Context, o *Outbox) error {
	var old []Chunk
	for _, s := range k.Root.Sent {
		old = append(old, s.Chunks...)
	}
	sent, inline := o.Sent(), 0
	for i := range sent {
		s := &sent[i]
		if inline+len(s.Items) <= maxInline {
			inline += len(s.Items)
			continue
		}
		for part := range slices.Chunk(s.Items, maxChunk) {
			chunk, err := k.write(ctx, part)
			if err != nil {
				return err
			}
			s.Chunks = append(s.Chunks, chunk)
		}
		s.Items = nil
	}
	k.Root.Sent = sent
	if err := k.Store(ctx); err != nil {
		return err
	}
	o.Committed()
	k.Drop(ctx, old)
	return nil
}

// OpenOutbox returns the outbox of the partition, and sends what the previous owner has not.
func (k *Keeper) OpenOutbox(ctx context.Context, post *Post) (*Outbox, error) {
	o := newOutbox(post, k.claim)
	for _, s := range k.Root.Sent {
		for _, c := range s.Chunks {
			data, err := k.chunk(ctx, c)
			if err != nil {
				return nil, k.unreadable(ctx, err)
			}
			s.Items = append(s.Items, data...)
		}
		if err := o.restore(s); err != nil {
			return nil, k.unreadable(ctx, err)
		}
	}
	o.Committed()
	return o, nil
}

// AddChunk writes a chunk. It is part of the state once the root is stored.
func (k *Keeper) AddChunk(ctx context.Context, data []byte) error {
	chunk, err := k.write(ctx, data)
	if err == nil {
		k.Root.Chunks = append(k.Root.Chunks, chunk)
	}
	return err
}

func (k *Keeper) write(ctx context.Context, data []byte) (Chunk, error) {
	k.Root.Serial++
	c := k.claim
	key := fmt.Sprintf("chunk.%s.%d.%d.%d", c.Module, c.Part, c.Epoch, k.Root.Serial)
	if err := k.states.Put(ctx, key, data); err != nil {
		return Chunk{}, fmt.Errorf("engine: write %s: %w", key, err)
	}
	return Chunk{key, len(data)}, nil
}

// Drop removes unused chunks. A chunk that cannot be removed does no harm.
func (k *Keeper) Drop(ctx context.Context, chunks []Chunk) {
	for _, c := range chunks {
		_ = k.states.Delete(ctx, c.Key)
	}
}

// Load yields the chunks of the state in the order in which they were written.
func (k *Keeper) Load(ctx context.Context, load func(data []byte) error) error {
	for _, c := range k.Root.Chunks {
		data, err := k.chunk(ctx, c)
		if err == nil {
			err = load(data)
		}
		if err != nil {
			return k.unreadable(ctx, fmt.Errorf("%s: %w", c.Key, err))
		}
	}
	return nil
}

// A lagging replica may not yet have a chunk that the root names.
const (
	chunkTries = 50
	chunkPause = 100 * time.Millisecond
)

// chunk reads one chunk.
func (k *Keeper) chunk(ctx context.Context, c Chunk) (data []byte, err error) {
	for range chunkTries {
		if data, err = k.states.Get(ctx, c.Key); err != nil || len(data) == c.Size {
			return data, err
		}
		pause(ctx, chunkPause)
	}
	return nil, fmt.Errorf("engine: %s has %d bytes, want %d", c.Key, len(data), c.Size)
}
