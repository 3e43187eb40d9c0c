package satstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// damages are what may happen to a file. Each returns what is left of it; nil means that it is gone.
var damages = map[string]func(b, other []byte) []byte{
	"is gone":           func([]byte, []byte) []byte { return nil },
	"is empty":          func([]byte, []byte) []byte { return []byte{} },
	"is cut in half":    func(b, _ []byte) []byte { return b[:len(b)/2] },
	"lacks a byte":      func(b, _ []byte) []byte { return b[:max(0, len(b)-1)] },
	"has a byte more":   func(b, _ []byte) []byte { return append(b, 7) },
	"has more of it":    func(b, _ []byte) []byte { return append(b, b[len(b)/2:]...) },
	"is of zeros":       func(b, _ []byte) []byte { return make([]byte, len(b)) },
	"begins with zeros": func(b, _ []byte) []byte { clear(b[:min(len(b), 512)]); return b },
	"has a zero sector": func(b, _ []byte) []byte {
		clear(b[len(b)/2 : min(len(b), len(b)/2+512)])
		return b
	},
	"ends with zeros":  func(b, _ []byte) []byte { clear(b[len(b)-min(len(b), 512):]); return b },
	"is another one's": func(_, other []byte) []byte { return other },
	"is of noise": func(b, _ []byte) []byte {
		random := rand.New(rand.NewPCG(uint64(len(b)), 1))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	},
	"has sectors moved": func(b, _ []byte) []byte {
		for at := 0; at+8192 <= len(b); at += 8192 {
			swapped := slices.Concat(b[at+4096:at+8192], b[at:at+4096])
			copy(b[at:], swapped)
		}
		return b
	},
}

// TestEveryDamage does everything to every file. Whoever opens the store or checks it hears of it,
// with the file's name, or nothing of what it held is missing or other than it was; and Repair saves
// nothing that was not there.
func TestEveryDamage(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{true, false} {
		disk, o, want := filled(t, Options{Buffer: 16 << 10, pending: 2 << 10}, closed)
		other, _, _ := filled(t, Options{Buffer: 32 << 10, pending: 2 << 10}, closed)
		names, err := disk.List()
		require.NoError(t, err)
		for _, file := range names {
			// What a crash leaves differs from what Close does by these two.
			if closed == (file == pendingName || strings.HasPrefix(file, "log-")) {
				continue
			}
			for what, damage := range damages {
				t.Run(fmt.Sprintf("closed=%v/%s/%s", closed, file, strings.ReplaceAll(what, " ", "-")),
					func(t *testing.T) {
						damaged := disk.Clone()
						if b := damage(damaged.Data(file), other.Data(file)); b != nil {
							damaged.Put(file, b)
						} else {
							require.NoError(t, damaged.Remove(file))
						}
						requireNoticed(t, damaged.Clone(), o, want)
						requireNothingNew(t, damaged, o, want)
					})
			}
		}
	}
}

// requireNoticed opens and checks a store that may be damaged. What was cut off the end of a log is
// told by Stats.Cut, as a crash does the same; and pending counts only as long as it is whole.
func requireNoticed(t *testing.T, disk *vfs.Mem, o Options, want map[string]string) {
	t.Helper()
	s, err := open(disk, o)
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		require.Regexp(t, `CHECKPOINT|buckets|log-|ids-|places-|pending`, err.Error())
		return
	}
	if got := contents(t, s); !maps.Equal(want, got) {
		require.Positive(t, s.stats.Cut, "nobody noticed, and the contents are others")
	}
	require.NoError(t, s.Close())
}

// requireNothingNew repairs a store. What comes of it is whole, and of what was there at some time:
// where it was said that a record was deleted may be damaged.
func requireNothingNew(t *testing.T, disk *vfs.Mem, o Options, want map[string]string) {
	t.Helper()
	to := vfs.NewMem()
	done, err := repair(disk, to, o)
	if err != nil {
		return // without a CHECKPOINT or any buckets there is nothing to go by
	}
	s := mustOpen(t, to, o)
	require.NoError(t, s.Check())
	got := contents(t, s)
	require.EqualValues(t, len(got), done.Records)
	if len(got) < len(want) {
		require.NotEmpty(t, done.Findings)
	}
	for id := range got {
		require.Regexp(t, `^https://a\.test/[0-9]+$`, id)
	}
	require.NoError(t, s.Close())
}

// TestRepairInSlotZero: a store that is in slot 0 is so when it has been repaired.
func TestRepairInSlotZero(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs, Options{Start: -1, Commit: -1})
	require.NoError(t, s.Advance())
	mustAdd(t, s, "later", 5, "x")
	require.NoError(t, s.Close())
	to := vfs.NewMem()
	done, err := repair(fs, to, Options{Commit: -1})
	require.NoError(t, err)
	require.Equal(t, Repaired{Records: 1}, done)
	s = mustOpen(t, to, Options{Commit: -1})
	require.Zero(t, s.Now())
	require.Equal(t, map[string]string{"later": "5 x"}, contents(t, s))
}

// TestBackupOfDamage: what cannot be read cannot be backed up, and what was copied is no store.
func TestBackupOfDamage(t *testing.T) {
	disk, o, _ := filled(t, Options{Buffer: 16 << 10}, true)
	s := mustOpen(t, disk, o)
	disk.Put(dataName, disk.Data(dataName)[:grain*2])
	// The file that the store has open is the one that was there before: so it is cut for the next.
	require.NoError(t, s.backup(vfs.NewMem()))
	_, err := open(disk, o)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, s.Close())
	cut, err := open(disk.Clone(), o)
	if err == nil {
		to := vfs.NewMem()
		require.ErrorIs(t, cut.backup(to), ErrCorrupt)
		require.Nil(t, to.Data(checkpointName))
	}
}

// TestUnsoundManifests: what a checkpoint says may be whole and yet nothing that a store can be in.
// It is refused; whoever went by it would read without an end, or beside the file.
func TestUnsoundManifests(t *testing.T) {
	disk, o, _ := filled(t, Options{Buffer: 16 << 10}, true)
	sealed := disk.Data(checkpointName)
	some := func(m *manifest, of func(*bucket) *part) *part {
		for _, b := range m.buckets[m.due:] {
			if p := of(b); len(p.extents) > 0 {
				return p
			}
		}
		require.Fail(t, "no bucket has any")
		return nil
	}
	records := func(b *bucket) *part { return &b.records }
	messages := func(b *bucket) *part { return &b.messages }
	for name, spoil := range map[string]func(*manifest){
		"entries without an extent":      func(m *manifest) { some(m, records).disk++ },
		"messages without an extent":     func(m *manifest) { some(m, messages).disk++ },
		"messages without any":           func(m *manifest) { some(m, messages).extents = nil },
		"an extent of no bytes":          func(m *manifest) { some(m, records).extents[0].size = 0 },
		"an extent of no entries":        func(m *manifest) { some(m, records).extents[0].count = 0 },
		"an extent of gigabytes":         func(m *manifest) { some(m, records).extents[0].size = 1 << 30 },
		"an extent beyond the file":      func(m *manifest) { some(m, records).extents[0].at = 1<<32 - 1 },
		"more that is due than there is": func(m *manifest) { m.due = len(m.buckets) + 1 },
		"a slot beyond all":              func(m *manifest) { m.now = maxSlot + 1 },
		"a number given twice":           func(m *manifest) { m.buckets[1].number = m.buckets[0].number },
		"a bucket of a later time":       func(m *manifest) { m.buckets[0].id = m.nextBucket },
		"a negative count":               func(m *manifest) { m.records = -1 },
		"an unknown mode":                func(m *manifest) { m.options.Mode = Naive + 1 },
		"no unit":                        func(m *manifest) { m.options.Unit = 0 },
		"two in one place": func(m *manifest) {
			some(m, messages).extents[0].at = some(m, records).extents[0].at
		},
		"a level that ends in the past": func(m *manifest) { m.ends[0] = m.now },
	} {
		m, err := unseal(sealed, 0)
		require.NoError(t, err)
		spoil(m)
		damaged := disk.Clone()
		damaged.Put(checkpointName, m.seal())
		_, err = open(damaged, o)
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
}

// TestHostileLog: a log that is made of beginnings of groups is read in a time that grows with its
// size, and not with the square of it.
func TestHostileLog(t *testing.T) {
	log := logHead(1)
	for len(log) < 8<<20 {
		at := len(log)
		log = binary.LittleEndian.AppendUint32(log, groupMagic)
		log = append(log, 0, 0, 0, 0)
		log = binary.LittleEndian.AppendUint32(log, 4<<20)
		log = binary.LittleEndian.AppendUint64(log, uint64(at))
		log = append(log, make([]byte, 8)...)
	}
	fs := vfs.NewMem()
	fs.Put(logName(1), log)
	r, err := openLog(fs, 1)
	require.NoError(t, err)
	_, err = r.next()
	require.ErrorIs(t, err, ErrCorrupt)
}

// TestHugeLengths: lengths that are negative where an int has 32 bits are none.
func TestHugeLengths(t *testing.T) {
	for _, n := range []uint32{1 << 31, 1<<31 + 1, 1<<32 - 1} {
		l := &updateLog{number: 1, end: logHeader}
		group := l.frame(nil, []byte("changes"))
		binary.LittleEndian.PutUint32(group[8:], n)
		fs := vfs.NewMem()
		fs.Put(logName(1), append(logHead(1), group...))
		r, err := openLog(fs, 1)
		require.NoError(t, err)
		changes, err := r.next()
		require.NoError(t, err)
		require.Nil(t, changes)

		m, err := fs.Map(pendingName, 512)
		require.NoError(t, err)
		h := halves(m)
		h[0].begin(1, 20)
		m.Store(pendingWord, uint64(n))
		require.Nil(t, pendingAfter(m.Bytes, 1, 20))
	}
}

// TestOddOptions plays with stores at the ends of what options allow, all against the same model,
// with kills, power failures and Close in between.
func TestOddOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"microseconds":            {Unit: 1, Radix: 512, Horizon: maxHorizon},
		"the longest unit":        {Unit: 1<<63 - 1},
		"one slot ahead":          {Radix: -1, Horizon: 1},
		"one slot ahead, radix 2": {Radix: 2, Horizon: 1},
		"two slots, naive":        {Radix: 2, Horizon: 2, Mode: Naive},
		"more levels than enough": {Radix: 2, Horizon: maxHorizon},
		"a wide radix":            {Radix: 512, Horizon: 100_000, Compression: S2},
		"flat and long":           {Radix: -1, Horizon: 20_000},
		"basic, one slot, zstd":   {Radix: -1, Horizon: 1, Mode: Basic, Compression: Zstd},
		"basic, large pages":      {Mode: Basic, Page: 1 << 20, Flush: FlushLarge},
		"pages of a megabyte":     {Page: 1 << 20},
		"naive, no log":           {Mode: Naive, NoLog: true, Compression: Zstd},
		"naive, large, s2":        {Mode: Naive, Flush: FlushLarge, Compression: S2},
		"tight and compressed":    {pending: 600, Compression: S2, Flush: FlushLarge},
		"odd pages":               {Page: 777, Buffer: 9999, pending: 5001},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			p := newPlayer(t, o, 21)
			for range 2 {
				for i := range 60 {
					require.NoError(t, p.play(), "step %d", i)
				}
				p.check()
				p.kill()
				p.fs.FailAt(p.fs.Steps()+1+p.random.IntN(60), vfs.ErrPower)
				var err error
				for i := 0; err == nil && i < 60; i++ {
					err = p.play()
				}
				p.catchUp()
				p.crash()
				p.reopen()
				p.check()
				require.NoError(t, p.s.Check())
			}
			require.NoError(t, p.s.Close())
		})
	}
}

// TestNoSyncIsKilled: a store that never syncs loses nothing when its process is killed, however it
// was opened and flushed before.
func TestNoSyncIsKilled(t *testing.T) {
	t.Parallel()
	for name, o := range optionSets {
		if o.NoSync = true; o.NoLog {
			continue
		}
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, o, 4)
			for range 3 {
				for range 40 {
					require.NoError(t, p.play())
				}
				p.kill()
				p.reopen()
				p.check()
			}
		})
	}
}

// TestShardsRefuse: an error of one store does not keep back the others, and each call tells it.
func TestShardsRefuse(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	shards, err := OpenShards(dirs, Options{Start: 1, Commit: time.Hour, pending: 64 << 10})
	require.NoError(t, err)
	_, err = OpenShards(nil, Options{})
	require.Error(t, err)
	var items []Item
	for i := range 90 {
		items = append(items, Item{ID: fmt.Sprint(i), Slot: 1})
	}
	refused := shards.For("7")
	others := 0
	for _, item := range items {
		if shards.For(item.ID) != refused {
			others++
		}
	}
	added, err := shards.AddBatch(append(items, Item{ID: "7", Slot: 1, Data: make([]byte, MaxData+1)}))
	require.ErrorIs(t, err, ErrSize)
	require.Equal(t, others, added)
	require.NoError(t, refused.Close())
	require.ErrorIs(t, shards.Advance(), ErrClosed)
	require.ErrorIs(t, shards.Sync(), ErrClosed)
	for _, s := range shards.Stores() {
		if s != refused {
			require.EqualValues(t, 2, s.Now())
			require.ErrorIs(t, firstOf(s.Due(cancelled())), context.Canceled)
		}
	}
	require.ErrorIs(t, shards.Close(), ErrClosed, "the others are closed all the same")
	for i := range dirs {
		s, err := Open(dirs[i], Options{pending: 64 << 10})
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestFullOfMarks: blocks are found again behind damage by their marks, of which data may be full.
func TestFullOfMarks(t *testing.T) {
	fs, o := vfs.NewMem(), Options{Start: 1, Commit: -1, pending: 8 << 10}
	s := mustOpen(t, fs, o)
	data := bytes.Repeat([]byte("SATR"), 1000)
	for i := range 60 { // several blocks
		mustAdd(t, s, fmt.Sprint(i), 5, string(data))
	}
	require.NoError(t, s.Close())
	fs.Flip(dataName, grain+500, 1)
	to := vfs.NewMem()
	done, err := repair(fs, to, o)
	require.NoError(t, err)
	require.NotEmpty(t, done.Findings)
	require.Positive(t, done.Records, "of the blocks behind it")
	require.EqualValues(t, 60, done.Records+done.Lost)
	for _, text := range contents(t, mustOpen(t, to, o)) {
		require.Equal(t, "5 "+string(data), text)
	}
}
