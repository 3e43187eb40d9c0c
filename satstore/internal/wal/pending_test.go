package wal

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// mustHalves returns the halves of a small file.
func mustHalves(t testing.TB, fs *vfs.Mem, size int) [2]half {
	t.Helper()
	m, err := fs.Map(PendingName, size)
	require.NoError(t, err)
	return halves(m, 0)
}

func (h *half) put(t testing.TB, number uint64, end int64, text string) {
	t.Helper()
	require.NoError(t, h.begin(number, end))
	h.changes = append(h.changes, text...)
	require.NoError(t, h.publish())
}

// TestPendingContinuesTheLog: only halves that follow the log's last group without a gap count.
func TestPendingContinuesTheLog(t *testing.T) {
	const number, first = 5, int64(1000)
	second := first + groupHeader + 3
	type part struct {
		number uint64
		end    int64
		text   string
	}
	abc, def := part{number, first, "abc"}, part{number, second, "def"}
	for _, tt := range []struct {
		name   string
		halves [2]part
		groups string // that the log has
		want   string
	}{
		{"the first half is next", [2]part{abc, {}}, "", "abc"},
		{"the second half is next", [2]part{{}, abc}, "", "abc"},
		{"both, in their order", [2]part{abc, def}, "", "abcdef"},
		{"both, in reverse order", [2]part{def, abc}, "", "abcdef"},
		{"one has been written", [2]part{abc, def}, "abc", "def"},
		{"both have been written", [2]part{abc, def}, "abcdef", ""},
		{"one is missing in between", [2]part{{}, def}, "", ""},
		{"of an older log", [2]part{{number - 1, first, "abc"}, {number - 1, second, "def"}}, "", ""},
		{"empty halves", [2]part{{number, first, ""}, {number, first, ""}}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := vfs.NewMem()
			h := mustHalves(t, fs, 512)
			for i, p := range tt.halves {
				h[i].put(t, p.number, p.end, p.text)
			}
			end := first
			for range len(tt.groups) / 3 {
				end += groupHeader + 3
			}
			got := ""
			for {
				changes := pendingAfter(fs.Data(PendingName), number, end)
				if changes == nil {
					break
				}
				got += string(changes)
				end += groupHeader + int64(len(changes))
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// TestPendingOfAnySize: files of any other size have no changes, and do no harm.
func TestPendingOfAnySize(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for size := range 200 {
		file := make([]byte, size)
		for i := range file {
			file[i] = byte(random.Int())
		}
		require.Nil(t, pendingAfter(file, 0, 0))
		copy(file, pendingMagic)
		require.Nil(t, pendingAfter(file, 0, 0))
	}
}

// TestDamagedPending flips each bit of the changes in a half: then none of them counts.
func TestDamagedPending(t *testing.T) {
	fs := vfs.NewMem()
	h := mustHalves(t, fs, 512)
	h[0].put(t, 3, 20, "changes")
	require.Equal(t, "changes", string(pendingAfter(fs.Data(PendingName), 3, 20)))
	for at := range pendingHeader + len("changes") {
		for bit := range 8 {
			damaged := fs.Clone()
			damaged.Flip(PendingName, int64(at), bit)
			require.Nil(t, pendingAfter(damaged.Data(PendingName), 3, 20), "bit %d of %d", bit, at)
		}
	}
}

// TestHostileLog: a log full of group headers is read in a time linear in its size, not quadratic.
func TestHostileLog(t *testing.T) {
	log := logHead(1, 0)
	for len(log) < 8<<20 {
		at := len(log)
		log = binary.LittleEndian.AppendUint32(log, groupMagic)
		log = append(log, 0, 0, 0, 0)
		log = binary.LittleEndian.AppendUint32(log, 4<<20)
		log = binary.LittleEndian.AppendUint64(log, uint64(at))
		log = append(log, make([]byte, 8)...)
	}
	fs := vfs.NewMem()
	fs.Put(FileName(1), log)
	_, err := Replay(fs, 1, nil, nil)
	require.ErrorContains(t, err, "many damaged groups")
}

// TestHugeLengths: lengths that are negative as a 32-bit int are invalid.
func TestHugeLengths(t *testing.T) {
	for _, n := range []uint32{1 << 31, 1<<31 + 1, 1<<32 - 1} {
		f := &File{number: 1, end: logHeader}
		group := f.appendGroup(nil, []byte("changes"), 0)
		binary.LittleEndian.PutUint32(group[8:], n)
		fs := vfs.NewMem()
		fs.Put(FileName(1), append(logHead(1, 0), group...))
		done, err := Replay(fs, 1, nil, nil)
		require.NoError(t, err)
		require.EqualValues(t, len(group), done.Cut)

		h := mustHalves(t, fs, 512)
		require.NoError(t, h[0].begin(1, 20))
		require.NoError(t, h[0].file.Store(pendingWord, uint64(n)))
		require.Nil(t, pendingAfter(h[0].file.Bytes, 1, 20))
	}
}
