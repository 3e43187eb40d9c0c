package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// A Root is the record of a partition: its state or the location of its chunks, and the sequence of
// the last message that is part of it.
type Root struct {
	Epoch  uint64 // of the owner that wrote it
	Writes uint64 // by this owner: no two roots are equal
	Seq    uint64 // of the last message that is part of the state
	Lag    uint64 // messages after it, as far as the owner knew
	Open   int    // items that wait for an answer
	Serial uint64 // counts the chunks that this owner has written
	Chunks []Chunk
	Extra  json.RawMessage  `json:",omitempty"` // additional state of the module
	Counts map[string]int64 `json:",omitempty"` // for operators
}

// Same reports whether two roots of a partition are the same one.
func (r Root) Same(other Root) bool { return r.Epoch == other.Epoch && r.Writes == other.Writes }

// A Chunk is a part of the state that is too big for the root. It is never overwritten.
type Chunk struct {
	Key  string
	Size int
}

// ReadRoots reads the roots of all partitions. However many they are, that is a few requests.
func ReadRoots(ctx context.Context, bus *jet.Bus) (map[message.Dest]Root, error) {
	records, err := bus.Records(ctx)
	roots := make(map[message.Dest]Root, len(records))
	for d, value := range records {
		var r Root
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, fmt.Errorf("engine: root of %s: %w", d, err)
		}
		roots[d] = r
	}
	return roots, err
}

// ReadRoot reads the root of a partition without owning it.
func ReadRoot(ctx context.Context, bus *jet.Bus, d message.Dest) (r Root, err error) {
	value, _, err := bus.Record(ctx, d)
	if err == nil && value != nil {
		if err = json.Unmarshal(value, &r); err != nil {
			err = fmt.Errorf("engine: root of %s: %w", d, err)
		}
	}
	return r, err
}

// A Keeper replaces the root of a partition that this process owns. It is not safe for concurrent
// use.
type Keeper struct {
	bus      *jet.Bus
	states   *jet.Table
	claim    Claim
	revision uint64 // of the stored root
	Root     Root   // as it was last stored, or is to be stored next
}

// Keep reads the root of a partition and writes it again under the claim's epoch, so that no
// previous owner can replace it. It fails with [ErrFenced] if there is an owner of the same epoch
// or a later one.
func Keep(ctx context.Context, bus *jet.Bus, states *jet.Table, c Claim) (*Keeper, error) {
	for {
		k, err := newKeeper(ctx, bus, states, c)
		if err != nil {
			return nil, err
		}
		record, err := k.record()
		if err != nil {
			return nil, err
		}
		// A previous owner that does not know yet that it was replaced may write between the two.
		// It has lost as soon as this write comes first; until then, its writes are progress.
		records := []jet.Record{record}
		_, fenced, err := bus.Commit(ctx, records, nil)
		if errors.Is(err, jet.ErrFull) {
			pause(ctx, fullPause)
			continue
		}
		if k.revision = records[0].Revision; len(fenced) == 0 {
			return k, err
		}
	}
}

// newKeeper returns a keeper of the existing root. The claim owns the root once it is stored.
func newKeeper(ctx context.Context, bus *jet.Bus, states *jet.Table, c Claim) (*Keeper, error) {
	value, revision, err := bus.Record(ctx, c.Dest)
	if err != nil {
		return nil, err
	}
	k := &Keeper{bus: bus, states: states, claim: c, revision: revision}
	if value != nil {
		if err := json.Unmarshal(value, &k.Root); err != nil {
			return nil, k.unreadable(ctx, err)
		}
	}
	if k.Root.Epoch >= c.Epoch {
		return nil, fmt.Errorf("%w: root of epoch %d, claim of %d",
			ErrFenced, k.Root.Epoch, c.Epoch)
	}
	// Keys of chunks contain the epoch: a previous owner cannot overwrite the chunks of this one.
	k.Root.Epoch, k.Root.Writes, k.Root.Serial = c.Epoch, 0, 0
	return k, nil
}

// record returns the root as it is to be stored next.
func (k *Keeper) record() (jet.Record, error) {
	if err := k.claim.Guard(); err != nil {
		return jet.Record{}, err
	}
	k.Root.Writes++
	value, err := json.Marshal(k.Root)
	if err != nil {
		return jet.Record{}, fmt.Errorf("engine: encode root: %w", err)
	}
	return jet.Record{Of: k.claim.Dest, Value: value, Revision: k.revision}, nil
}

// Behind reports whether the partition has messages that are not part of the state.
func (k *Keeper) Behind(ctx context.Context) (bool, error) {
	end, err := k.bus.End(ctx, k.claim.Dest)
	return end > k.Root.Seq, err
}

// maxChunk is the size of a chunk, well below the limit of messages.
const maxChunk = 512 << 10

// AddChunk writes a chunk. It is part of the state once the root is stored.
func (k *Keeper) AddChunk(ctx context.Context, data []byte) error {
	k.Root.Serial++
	key := fmt.Sprintf("chunk.%s.%d.%d", k.claim.Dest, k.claim.Epoch, k.Root.Serial)
	if err := k.states.Put(ctx, key, data); err != nil {
		return fmt.Errorf("engine: write %s: %w", key, err)
	}
	k.Root.Chunks = append(k.Root.Chunks, Chunk{key, len(data)})
	return nil
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
