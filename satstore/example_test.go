package satstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spinneret-go/spinneret/satstore"
)

func Example() {
	dir, err := os.MkdirTemp("", "satstore")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := satstore.Open(dir, satstore.Options{Start: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = store.AddBatch([]satstore.Item{
		{ID: "https://example.com/", Slot: 100, Data: []byte("never visited")},
		{ID: "https://example.com/news", Slot: 101, Data: []byte("never visited")},
	})
	for range 3 {
		for record, err := range store.Due(context.Background()) {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Printf("slot %d: %s, %s\n", store.Now(), record.ID, record.Data)
			visited := fmt.Appendf(nil, "visited in %d", store.Now())
			err = record.Reschedule(store.Now()+2, visited)
			if err != nil {
				fmt.Println(err)
			}
		}
		err = errors.Join(err, store.Advance())
	}
	fmt.Println(errors.Join(err, store.Close()))
	// Output:
	// slot 100: https://example.com/, never visited
	// slot 101: https://example.com/news, never visited
	// slot 102: https://example.com/, visited in 100
	// <nil>
}

// temporary opens a store that the example's end removes.
func temporary(o satstore.Options) (*satstore.Store, func()) {
	dir, err := os.MkdirTemp("", "satstore")
	if err != nil {
		panic(err)
	}
	store, err := satstore.Open(dir, o)
	if err != nil {
		panic(err)
	}
	return store, func() {
		if err := errors.Join(store.Close(), os.RemoveAll(dir)); err != nil {
			panic(err)
		}
	}
}

// A feed or a sitemap tells about pages that are not due: messages wait for them.
func ExampleStore_Update() {
	store, remove := temporary(satstore.Options{
		Start: 1,
		Merge: func(_, data, message []byte) []byte { return fmt.Appendf(data, ", %s", message) },
	})
	defer remove()
	_, err := store.Add("https://example.com/", 2, []byte("every day"))
	fmt.Println(err)
	fmt.Println(store.Update("https://example.com/", []byte("in a feed")))
	fmt.Println(store.Update("https://example.com/404", nil))
	fmt.Println(store.Advance())
	for record := range store.Due(context.Background()) {
		fmt.Printf("%s\n", record.Data)
	}
	// Output:
	// <nil>
	// <nil>
	// satstore: no record has this id
	// <nil>
	// every day, in a feed
}

// A record that waits long for its host should not keep the block it was read from.
func ExampleRecord_Detach() {
	store, remove := temporary(satstore.Options{Start: 1})
	defer remove()
	_, err := store.Add("https://example.com/", 1, nil)
	fmt.Println(err)
	var slow *satstore.Record
	for record := range store.Due(context.Background()) {
		record.Detach()
		slow = record
	}
	fmt.Println(store.Advance()) // the record stays out
	fmt.Println(store.Stats().Out, "out")
	fmt.Println(slow.Reschedule(9, []byte("at last")))
	fmt.Println(store.Get("https://example.com/"))
	// Output:
	// <nil>
	// <nil>
	// 1 out
	// <nil>
	// {https://example.com/ 9 [97 116 32 108 97 115 116]} <nil>
}

// Each shard is read by a goroutine of its own; here one after the other.
func ExampleOpenShards() {
	dir, err := os.MkdirTemp("", "satstore")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	disks := []string{filepath.Join(dir, "disk1"), filepath.Join(dir, "disk2")}
	shards, err := satstore.OpenShards(disks, satstore.Options{Start: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	var pages []satstore.Item
	for i := range 10 {
		pages = append(pages, satstore.Item{ID: fmt.Sprint("https://example.com/", i), Slot: 1})
	}
	fmt.Println(shards.AddBatch(pages))
	due := 0
	for _, store := range shards.Stores() {
		for record := range store.Due(context.Background()) {
			err = errors.Join(err, record.Reschedule(2, nil))
			due++
		}
	}
	fmt.Println(due, errors.Join(err, shards.Close()))
	// Output:
	// 10 <nil>
	// 10 <nil>
}

// A backup is a store like any other, of one moment, while the first one goes on.
func ExampleStore_Backup() {
	store, done := temporary(satstore.Options{Start: 1})
	defer done()
	if _, err := store.Add("https://a.example/", 3, []byte("once")); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "backup")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := store.Backup(filepath.Join(dir, "copy")); err != nil {
		panic(err)
	}
	if err := store.Update("https://a.example/", []byte("changed since")); err != nil {
		panic(err)
	}

	backup, err := satstore.Open(filepath.Join(dir, "copy"), satstore.Options{})
	if err != nil {
		panic(err)
	}
	defer backup.Close()
	fmt.Println("faults:", backup.Check())
	for item, err := range backup.Scan() {
		fmt.Println(item.ID, item.Slot, string(item.Data), err)
	}
	item, err := store.Get("https://a.example/")
	fmt.Println(item.ID, item.Slot, string(item.Data), err)
	// Output:
	// faults: <nil>
	// https://a.example/ 3 once <nil>
	// https://a.example/ 3 changed since <nil>
}
