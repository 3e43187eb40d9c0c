package archive

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// damagedRun returns an archive with many pages, whose index has flipped bits in its blocks.
func damagedRun(t *testing.T, files *vfs.Mem, pages int) {
	t.Helper()
	a, err := OpenOn(files, Options{})
	require.NoError(t, err)
	for i := range pages {
		_, err := a.Append(page(fmt.Sprintf("http://a.test/%d", i), fmt.Sprint("body ", i)))
		require.NoError(t, err)
	}
	require.NoError(t, a.Close())
	names, err := files.List()
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasPrefix(name, indexName+"-") {
			for at := int64(100); at < int64(len(files.Data(name))*2/3); at += 1000 {
				files.Flip(name, at, 3)
			}
		}
	}
}

// A damaged index refuses no capture. It is rebuilt while captures are appended, and Stats tells.
func TestDamagedIndexRefusesNothing(t *testing.T) {
	files := vfs.NewMem()
	const pages = 400
	damagedRun(t, files, pages)
	a, err := OpenOn(files, Options{})
	require.NoError(t, err)
	for i := range pages {
		_, err := a.Append(page(fmt.Sprintf("http://a.test/%d", i), fmt.Sprint("body ", i)))
		require.NoError(t, err)
		_, err = a.Append(page(fmt.Sprintf("http://b.test/%d", i), "new"))
		require.NoError(t, err)
	}
	a.index.ended.Wait()
	require.ErrorIs(t, a.Stats().IndexDamage, ErrIndex)
	require.NoError(t, a.Stats().Index)
	for i := range pages {
		for _, host := range []string{"a", "b"} {
			v, err := a.At(fmt.Sprintf("http://%s.test/%d", host, i), time.Time{})
			require.NoError(t, err)
			require.NotEmpty(t, body(t, a, v))
		}
	}
	require.NoError(t, a.Sync())
	faults, _ := verify(t, a)
	require.Empty(t, faults)
	require.NoError(t, a.Close())
	a, err = OpenOn(files, Options{})
	require.NoError(t, err)
	faults, checked := verify(t, a)
	require.Empty(t, faults)
	require.Equal(t, 3*pages, checked.Versions)
	require.NoError(t, a.Close())
}

// A rebuild that fails, or that is interrupted by Close, is told and loses nothing.
func TestFailedRebuild(t *testing.T) {
	for step := 1; step < 40; step++ {
		files := vfs.NewMem()
		damagedRun(t, files, 100)
		a, err := OpenOn(files, Options{})
		require.NoError(t, err)
		files.FailAt(files.Steps()+step, syscall.EIO)
		for i := range 100 {
			if _, err = a.At(fmt.Sprintf("http://a.test/%d", i), time.Time{}); err != nil {
				require.ErrorIs(t, err, ErrIndex)
				break
			}
		}
		require.ErrorIs(t, err, ErrIndex)
		if step%2 == 0 {
			a.index.ended.Wait()
			if failed := a.Stats().Index; failed != nil {
				require.ErrorIs(t, failed, syscall.EIO)
				require.ErrorIs(t, errors.Join(a.Sync(), a.Sync()), syscall.EIO)
				require.NoError(t, a.Sync(), "it is told once")
			}
		}
		_ = a.Close()
		files.FailAt(0, nil)
		a, err = OpenOn(files.Clone(), Options{})
		require.NoError(t, err)
		faults, checked := verify(t, a)
		require.Empty(t, faults)
		require.Equal(t, 100, checked.Versions)
		require.NoError(t, a.Close())
	}
}

// Errors of merges reach the next Sync and Stats.
func TestBackgroundErrorsAreTold(t *testing.T) {
	files := vfs.NewMem()
	a, err := OpenOn(files, Options{})
	require.NoError(t, err)
	for i := range 5 {
		_, err := a.Append(page(fmt.Sprintf("http://a.test/%d", i), "x"))
		require.NoError(t, err)
		require.NoError(t, a.Commit())
	}
	a.index.ended.Wait()
	a.index.repaired(syscall.EIO)
	require.ErrorIs(t, a.Stats().Index, syscall.EIO)
	require.ErrorIs(t, a.Sync(), syscall.EIO)
	require.NoError(t, a.Sync())
	require.NoError(t, a.Close())
}
