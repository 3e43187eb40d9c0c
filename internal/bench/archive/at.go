package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/spinneret-go/spinneret/archive"
)

// The index that is measured has four versions of each URL, and a thousand URLs on each host.
const (
	versionsEach = 4
	pathsEach    = 1000
	firstTime    = 1_700_000_000_000_000 // in microseconds
	day          = 86_400_000_000
)

// at fills an index, in the format that FORMAT.md of package archive describes, and asks it for
// random URLs at random times: first with nothing of it in memory, then with all.
func at(o options) error {
	dir, err := os.MkdirTemp(o.dir, "bench-archive-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "index.bolt")
	began := time.Now()
	if err := fillIndex(path, o.entries); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Printf("at        filled %d entries in %.0f s, %.1f B/entry\n", o.entries,
		time.Since(began).Seconds(), float64(info.Size())/float64(o.entries))
	for range o.rounds {
		if err := forget(path); err != nil {
			return err
		}
		if err := ask(dir, "cold", o.entries, 2000); err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, f); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		if err := ask(dir, "warm", o.entries, 500_000); err != nil {
			return err
		}
	}
	return nil
}

func indexURL(i int) string {
	return fmt.Sprintf("http://www.host-%05d.example.org/some/path/of-usual-length/%04d.html",
		i/pathsEach, i%pathsEach)
}

func indexKey(i int) []byte {
	return fmt.Appendf(nil, "org,example,host-%05d,www)/some/path/of-usual-length/%04d.html\x00http\x00",
		i/pathsEach, i%pathsEach)
}

// fillIndex writes entries in the order of their keys, and leaves as much room on the pages as they
// have when they are written in another order.
func fillIndex(path string, entries int) error {
	db, err := bbolt.Open(path, 0o644, &bbolt.Options{NoSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	defer db.Close()
	const batch = 200_000
	for first := 0; first < entries; first += batch {
		err := db.Update(func(tx *bbolt.Tx) error {
			return putEntries(tx, first, min(first+batch, entries))
		})
		if err != nil {
			return err
		}
	}
	return db.Sync()
}

func putEntries(tx *bbolt.Tx, first, end int) error {
	buckets := map[string]*bbolt.Bucket{}
	for _, name := range []string{"meta", "files", "entries"} {
		b, err := tx.CreateBucketIfNotExists([]byte(name))
		if err != nil {
			return err
		}
		buckets[name] = b
	}
	if err := buckets["meta"].Put([]byte("version"), []byte("1")); err != nil {
		return err
	}
	// The file need not be there: nothing is read from it.
	file := append(make([]byte, 8), "far-away.warc.gz"...)
	if err := buckets["files"].Put(make([]byte, 4), file); err != nil {
		return err
	}
	buckets["entries"].FillPercent = 0.7
	for i := first; i < end; i++ {
		key := indexKey(i / versionsEach)
		at := uint64(firstTime + i%versionsEach*day)
		key = binary.BigEndian.AppendUint64(key, at^1<<63)
		key = append(key, make([]byte, 4)...) // the number of the file
		offset := binary.BigEndian.AppendUint64(nil, uint64(i)*8000)
		key = append(key, offset[2:]...)
		value := binary.AppendUvarint([]byte{2}, 8000)
		value = binary.AppendUvarint(value, 200)
		value = append(value, 21, 1)
		for range 5 {
			value = binary.LittleEndian.AppendUint32(value, rand.Uint32())
		}
		value = append(append(value, 9), "text/html"...)
		if err := buckets["entries"].Put(key, value); err != nil {
			return err
		}
	}
	return nil
}

// ask opens the archive and asks it n times.
func ask(dir, what string, entries, n int) error {
	a, err := archive.Open(dir, archive.Options{})
	if err != nil {
		return err
	}
	defer a.Close()
	took := make([]time.Duration, n)
	began := time.Now()
	for i := range took {
		url := indexURL(rand.IntN((entries + versionsEach - 1) / versionsEach))
		at := time.UnixMicro(firstTime + rand.Int64N(versionsEach*day))
		asked := time.Now()
		if _, err := a.At(url, at); err != nil {
			return fmt.Errorf("%s at %v: %w", url, at, err)
		}
		took[i] = time.Since(asked)
	}
	all := time.Since(began)
	slices.Sort(took)
	micro := func(d time.Duration) float64 { return float64(d) / 1e3 }
	fmt.Printf("at        %s: %8.0f/s, median %.1f us, 99 %% below %.1f us, mean %.1f us\n", what,
		float64(n)/all.Seconds(), micro(took[n/2]), micro(took[n*99/100]), micro(all)/float64(n))
	return nil
}
