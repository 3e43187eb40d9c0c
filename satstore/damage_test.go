package satstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// damages are kinds of damage to a file. Each returns the damaged content; nil means no file.
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

// TestEveryDamage applies each kind of damage to every file. Opening or checking the store must
// report it with the file's name, unless the contents are complete and unchanged. Repair must not
// invent anything.
func TestEveryDamage(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{true, false} {
		o := Options{Buffer: 16 << 10, test: testOptions{pending: 2 << 10}}
		disk, kept, want := filled(t, o, closed)
		o.Buffer = 32 << 10
		other, _, _ := filled(t, o, closed)
		names, err := disk.List()
		require.NoError(t, err)
		for _, file := range names {
			// A crash leaves these two files, and Close does not.
			if closed == (file == wal.PendingName || strings.HasPrefix(file, "log-")) {
				continue
			}
			for what, damage := range damages {
				name := fmt.Sprintf("closed=%v/%s/%s", closed, file, strings.ReplaceAll(what, " ", "-"))
				t.Run(name, func(t *testing.T) {
					damaged := disk.Clone()
					if b := damage(damaged.Data(file), other.Data(file)); b != nil {
						damaged.Put(file, b)
					} else {
						require.NoError(t, damaged.Remove(file))
					}
					detects(t, damaged.Clone(), kept, want)
					requireNothingNew(t, damaged, kept, want)
				})
			}
		}
	}
}

// detects reports whether a damaged store is refused, found to be damaged, or reports recovered
// damage. Otherwise it must have the expected contents. Only damage at the end of a log may look
// like changes that a crash cut off, which Stats.Cut counts.
func detects(t *testing.T, disk *vfs.Mem, o Options, want map[string]string) bool {
	t.Helper()
	s, err := open(disk, o)
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		require.Regexp(t, `CHECKPOINT|buckets|log-|ids-|pending`, err.Error())
		return true
	}
	if !maps.Equal(want, contents(t, s)) {
		require.Positive(t, s.stats.Cut, "undetected damage has changed the contents")
		return true
	}
	damage := s.Stats().Damage
	require.NoError(t, s.Close())
	return damage != nil
}

// requireNothingNew repairs a store. The result must be sound, and have only records that existed
// at some time: deleted ones may return if their deletion is damaged.
func requireNothingNew(t *testing.T, disk *vfs.Mem, o Options, want map[string]string) {
	t.Helper()
	to := vfs.NewMem()
	done, err := repair(disk, to, o)
	if err != nil {
		return // nothing can be repaired without a CHECKPOINT or buckets
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

// TestFlippedBits inverts bits of each file in turn. Each is detected, with file and offset, or
// changes nothing because it is in unused space.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{true, false} {
		disk, o, want := filled(t, Options{Buffer: 16 << 10}, closed)
		random := rand.New(rand.NewPCG(1, 2))
		names, err := disk.List()
		require.NoError(t, err)
		for _, file := range names {
			noticed, size := 0, len(disk.Data(file))
			for range 20 {
				damaged := disk.Clone()
				if file != wal.PendingName { // it would replace the end of the log
					require.NoError(t, damaged.Remove(wal.PendingName))
				}
				damaged.Flip(file, int64(random.IntN(size)), random.IntN(8))
				if detects(t, damaged, o, want) {
					noticed++
				}
			}
			t.Logf("closed=%v: %s: %d of 20 noticed", closed, file, noticed)
			switch {
			case file == manifest.Name: // one copy is enough
				require.Equal(t, 20, noticed)
			case file != extent.Name && file != wal.PendingName && size > wal.Header:
				require.Greater(t, noticed, 1, file)
			}
		}
	}
}

// TestForgedManifests changes each number of a checkpoint in turn, and updates the checksum. Open,
// Check and Repair refuse it or continue; none of them panics or allocates without bound.
func TestForgedManifests(t *testing.T) {
	t.Parallel()
	disk, o, _ := filled(t, Options{Buffer: 16 << 10}, false)
	body := sealedBody(disk.Data(manifest.Name))
	refused, opened := 0, 0
	values := []uint64{1, 1 << 40, 200, math.MaxUint64}
	for at, number := 0, 0; at < len(body); number++ {
		_, size := binary.Uvarint(body[at:])
		for _, n := range values[number%2*2:][:2] {
			forged := slices.Clone(body[:at])
			forged = binary.AppendUvarint(forged, n)
			forged = append(forged, body[at+max(size, 1):]...)
			damaged := disk.Clone()
			damaged.Put(manifest.Name, seal(forged))
			s, err := open(damaged.Clone(), o)
			if err != nil {
				refused++
				continue
			}
			opened++
			_ = s.Check()
			_ = s.Close()
			_, _ = repair(damaged, vfs.NewMem(), o)
		}
		at += max(size, 1)
	}
	t.Logf("%d refused, %d opened", refused, opened)
	require.Positive(t, opened)
	require.Greater(t, refused, opened)
}

// sealedBody returns the body of a manifest, and seal adds the checksum to one.
func sealedBody(b []byte) []byte { return b[20:durable.FrameSize(b)] }

func seal(body []byte) []byte {
	b := durable.Seal("SATCHK9\n", body)
	return append(b, b...)
}

// TestSecondCopy: one flipped bit of the checkpoint loses nothing, and is reported.
func TestSecondCopy(t *testing.T) {
	fs, o := vfs.NewMem(), logged()
	s := mustOpen(t, fs, o)
	mustAdd(t, s, "a", 5, "x")
	require.NoError(t, s.Close())
	fs.Flip(manifest.Name, 30, 1)
	s = mustOpen(t, fs, o)
	require.Equal(t, map[string]string{"a": "5 x"}, contents(t, s))
	var where *CorruptError
	require.ErrorAs(t, s.Stats().Damage, &where)
	require.Equal(t, manifest.Name, where.File)
	require.NoError(t, s.Check(), "Open has rewritten it")
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, o)
	require.NoError(t, s.Stats().Damage)
}

// TestRepairKeepsAll: a repair loses nothing if the store is intact, or if only the indexes and one
// copy of the checkpoint are damaged.
func TestRepairKeepsAll(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{true, false} {
		disk, o, want := filled(t, Options{}, closed)
		names, err := disk.List()
		require.NoError(t, err)
		for _, file := range append(names, "") {
			damaged := disk.Clone()
			switch {
			case file == manifest.Name:
				damaged.Flip(file, 30, 3)
			case numberOf(file, idset.FileName) > 0:
				require.NoError(t, damaged.Remove(file))
			case file != "":
				continue
			}
			was := damaged.Clone()
			to := vfs.NewMem()
			done, err := repair(damaged, to, o)
			require.NoError(t, err)
			require.Zero(t, done.Lost)
			require.Equal(t, len(want), int(done.Records), "without %q", file)
			if file == "" { // a file of ids may be older than the checkpoint
				require.Empty(t, done.Findings)
			} else if file == manifest.Name {
				require.NotEmpty(t, done.Findings)
			}
			s := mustOpen(t, to, o)
			require.Equal(t, sinceNow(t, want, nowOf(s)), contents(t, s))
			require.NoError(t, s.Check())
			require.NoError(t, s.Close())
			for _, name := range names { // Repair only reads the old store
				require.Equal(t, was.Data(name), damaged.Data(name), name)
			}
		}
	}
}

// sinceNow makes overdue records due now.
func sinceNow(t testing.TB, want map[string]string, now int64) map[string]string {
	moved := map[string]string{}
	for id, text := range want {
		slot, data, _ := strings.Cut(text, " ")
		n, err := strconv.ParseInt(slot, 10, 64)
		require.NoError(t, err)
		moved[id] = fmt.Sprint(max(n, now), " ", data)
	}
	return moved
}

// TestRepairOfDamage flips bits of the buckets. All records outside damaged blocks must be there,
// unchanged.
func TestRepairOfDamage(t *testing.T) {
	t.Parallel()
	disk, o, want := filled(t, Options{Buffer: 16 << 10}, true)
	random := rand.New(rand.NewPCG(9, 9))
	lost, size := 0, len(disk.Data(extent.Name))
	for range 12 {
		damaged := disk.Clone()
		for range 60 {
			at := random.IntN(size-16) + 16
			damaged.Flip(extent.Name, int64(at), random.IntN(8))
		}
		to := vfs.NewMem()
		done, err := repair(damaged, to, o)
		require.NoError(t, err)
		s := mustOpen(t, to, o)
		got := contents(t, s)
		require.NoError(t, s.Check())
		require.NoError(t, s.Close())
		missing := 0
		for id := range want {
			if _, found := got[id]; !found {
				missing++
			}
		}
		require.LessOrEqual(t, missing, int(done.Lost))
		if missing > 0 {
			lost++
			require.NotEmpty(t, done.Findings)
			require.ErrorIs(t, done.Findings[0], ErrCorrupt)
		}
	}
	require.NotZero(t, lost)
}

// TestRepairOfLostDeletes: a record that was deleted does not return, and does not hide the one that was
// added with its id afterwards, when the message that says so is damaged.
func TestRepairOfLostDeletes(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), small(Options{})
	s := mustOpen(t, fs, o)
	want := map[string]string{}
	for i := range 20 {
		id := fmt.Sprint("https://a.test/", i)
		mustAdd(t, s, id, 1060, "old")
		want[id] = "1060 old"
		if i%2 == 0 {
			require.NoError(t, s.Update(id, []byte("news")))
			require.NoError(t, s.Delete(id))
			delete(want, id)
		}
		if i%4 == 0 {
			mustAdd(t, s, id, 1060+int64(i), "new")
			want[id] = fmt.Sprint(1060+i, " new")
		}
	}
	require.NoError(t, s.Close())
	damaged, messages := 0, 0
	data := fs.Data(extent.Name)
	for at := range int64(len(data)) {
		if !bytes.HasPrefix(data[at:], messageMark()) {
			continue
		}
		messages++
		for _, indexed := range []bool{true, false} {
			disk, to := fs.Clone(), vfs.NewMem()
			disk.Flip(extent.Name, at+30, 2)
			if !indexed {
				names, err := disk.List()
				require.NoError(t, err)
				for _, name := range names {
					if numberOf(name, idset.FileName) > 0 {
						disk.Flip(name, 40, 1)
					}
				}
			}
			done, err := repair(disk, to, o)
			require.NoError(t, err)
			require.NotEmpty(t, done.Findings)
			got := contents(t, mustOpen(t, to, o))
			for id, text := range want {
				require.Equal(t, text, got[id], id)
			}
			if indexed {
				require.Equal(t, want, got)
				require.EqualValues(t, 10, done.Stale)
			}
			require.EqualValues(t, len(got), done.Records)
			damaged++
		}
	}
	require.Positive(t, messages)
	require.Equal(t, 2*messages, damaged)
}

// messageMark is how blocks of messages begin after their checksum.
func messageMark() []byte { return binary.LittleEndian.AppendUint32(nil, extent.Messages) }

// TestDataFullOfMarks: blocks after damage are found by their marks, which may also occur in data.
func TestDataFullOfMarks(t *testing.T) {
	fs, o := vfs.NewMem(), logged()
	s := mustOpen(t, fs, o)
	data := bytes.Repeat([]byte("SATR"), 1000)
	for i := range 60 { // several blocks
		mustAdd(t, s, fmt.Sprint(i), 5, string(data))
	}
	require.NoError(t, s.Close())
	fs.Flip(extent.Name, 4096+500, 1)
	to := vfs.NewMem()
	done, err := repair(fs, to, o)
	require.NoError(t, err)
	require.NotEmpty(t, done.Findings)
	require.Positive(t, done.Records, "from the blocks after it")
	require.EqualValues(t, 60, done.Records+done.Lost)
	for _, text := range contents(t, mustOpen(t, to, o)) {
		require.Equal(t, "5 "+string(data), text)
	}
}

// TestCheckCompares creates inconsistencies between intact files.
func TestCheckCompares(t *testing.T) {
	id := "https://a.test/0"
	plants := map[string]func(*Store){
		"bucket index":     func(s *Store) { s.places.set(0, s.places.get(0)+1) },
		"missing id":       func(s *Store) { s.ids.Delete(idset.KeyOf(id)) },
		"additional id":    func(s *Store) { s.ids.Put(idset.Key{1}, 5) },
		"count":            func(s *Store) { s.records++ },
		"duplicate record": func(s *Store) { s.place(entry{0, 1, []byte(id), nil}) },
		"foreign number":   func(s *Store) { s.place(entry{99, 1, []byte(id), nil}) },
	}
	for name, plant := range plants {
		s := mustOpen(t, vfs.NewMem(), small(Options{}))
		for i := range 10 {
			mustAdd(t, s, fmt.Sprint("https://a.test/", i), 1000+int64(i), "")
		}
		require.NoError(t, s.Check(), name)
		plant(s)
		require.ErrorIs(t, s.Check(), ErrCorrupt, name)
	}
}

// TestManyPages: a store whose bucket index has several pages opens from the pages that checkpoints
// and Close have saved, and from the log.
func TestManyPages(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), logged()
	o.Buffer, o.test.pending = 4<<20, 64<<10 // a page a checkpoint
	s := mustOpen(t, fs, o)
	var items []Item
	for i := range 3*pageNumbers + 500 {
		items = append(items, Item{ID: fmt.Sprint(i), At: at(int64(2 + i%300))})
	}
	for round := range 4 {
		if round < 3 {
			_, err := s.AddBatch(items[round*len(items)/3 : (round+1)*len(items)/3])
			require.NoError(t, err)
		}
		require.NoError(t, s.checkpointNow())
		require.NotEmpty(t, due(t, s, int64(2+round), func(r *Record) {
			require.NoError(t, r.Reschedule(at(400), nil))
		}))
		killed := mustOpen(t, fs.Clone(), o)
		require.NoError(t, killed.Check())
		require.NoError(t, killed.Close())
	}
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, o)
	require.Less(t, s.fs.read.Load(), int64(1200<<10), "the indexes are read, but no records")
	require.NoError(t, s.Check())
	require.EqualValues(t, len(items), s.Stats().Records)
}
