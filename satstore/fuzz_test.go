package satstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// FuzzEntries: decoded records and messages survive encoding and decoding, also in a buffer, where
// a record gets as much room as its computed size.
func FuzzEntries(f *testing.F) {
	b := bucket{start: 5, width: 64}
	f.Add(b.appendEntry(nil, entry{7, 6, []byte("id"), []byte("data")}), true)
	f.Add(appendMessage(nil, 7, message{payload: []byte("text")}), false)
	f.Add(appendMessage(nil, 1<<63, message{delete: true}), false)
	f.Fuzz(func(t *testing.T, in []byte, wide bool) {
		b := bucket{start: 5, width: 1}
		if wide {
			b.width = 64
		}
		d := durable.Decoder{B: in}
		if e := b.takeEntry(&d); !d.Bad {
			require.Less(t, e.slot-b.start, b.width)
			pool := extent.NewPool(1<<20, 512)
			b.place(pool, e, nil)
			b.place(pool, e, nil) // this may begin a page
			found := 0
			r := extent.NewReader(nil, nil, nil)
			_, err := walkRecords(r, &b, 0, b.records.Count(), nil, func(_ uint64, same entry) bool {
				require.Equal(t, e, same)
				found++
				return true
			})
			require.NoError(t, err)
			require.Equal(t, 2, found)
		}
		d = durable.Decoder{B: in}
		if seq, m := takeMessage(&d); !d.Bad {
			again := durable.Decoder{B: appendMessage(nil, seq, m)}
			sameSeq, same := takeMessage(&again)
			require.Equal(t, seq, sameSeq)
			require.Equal(t, m, same)
			require.Empty(t, again.B)
		}
	})
}
