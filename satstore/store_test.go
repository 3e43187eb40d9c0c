package satstore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// contents returns all records, by id, as "slot data".
func contents(t testing.TB, s *Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for item, err := range s.Scan() {
		require.NoError(t, err)
		if _, twice := all[item.ID]; twice {
			t.Fatalf("%s is there twice", item.ID)
		}
		all[item.ID] = fmt.Sprint(item.Slot, " ", string(item.Data))
	}
	return all
}

func mustOpen(t testing.TB, fs vfs.FS, o Options) *Store {
	t.Helper()
	s, err := open(fs, o)
	require.NoError(t, err)
	return s
}
