package satstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/satstore"
)

func Example() {
	dir, err := os.MkdirTemp("", "satstore")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	noon := time.Date(2030, time.May, 1, 12, 0, 0, 0, time.UTC)
	store, err := satstore.Open(dir, satstore.Options{Start: noon})
	if err != nil {
		panic(err)
	}
	_, err = store.AddBatch([]satstore.Item{
		{ID: "https://example.com/", At: noon, Data: []byte("never visited")},
		{ID: "https://example.com/news", At: noon.Add(time.Hour), Data: []byte("never visited")},
	})
	for hour := range 3 {
		now := noon.Add(time.Duration(hour) * time.Hour)
		for record, err := range store.Due(context.Background(), now) {
			if err != nil {
				panic(err)
			}
			fmt.Printf("%s: %s, %s\n", now.Format("15:04"), record.ID, record.Data)
			err = record.Reschedule(now.Add(2*time.Hour), now.AppendFormat(nil, "visited at 15:04"))
			if err != nil {
				panic(err)
			}
		}
	}
	fmt.Println(errors.Join(err, store.Close()))
	// Output:
	// 12:00: https://example.com/, never visited
	// 13:00: https://example.com/news, never visited
	// 14:00: https://example.com/, visited at 12:00
	// <nil>
}

// hour returns an hour of some day.
func hour(n int) time.Time { return time.Date(2030, time.May, 1, n, 0, 0, 0, time.UTC) }

// temporary opens a store that is removed at the end of the example.
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

// Messages from a feed or a sitemap wait for pages that are not due yet.
func ExampleStore_Update() {
	store, remove := temporary(satstore.Options{
		Start: hour(1),
		Merge: func(_ string, data, message []byte) []byte {
			return fmt.Appendf(data, ", %s", message)
		},
	})
	defer remove()
	_, err := store.Add("https://example.com/", hour(2), []byte("every day"))
	fmt.Println(err)
	fmt.Println(store.Update("https://example.com/", []byte("in a feed")))
	fmt.Println(store.Update("https://example.com/404", nil))
	for record := range store.Due(context.Background(), hour(2)) {
		fmt.Printf("%s\n", record.Data)
	}
	// Output:
	// <nil>
	// <nil>
	// satstore: no record has this id
	// every day, in a feed
}

// A record that waits long for its host should not keep its block in memory.
func ExampleRecord_Detach() {
	store, remove := temporary(satstore.Options{Start: hour(1)})
	defer remove()
	_, err := store.Add("https://example.com/", hour(1), nil)
	fmt.Println(err)
	var slow *satstore.Record
	for record := range store.Due(context.Background(), hour(1)) {
		slow = record.Detach()
	}
	for range store.Due(context.Background(), hour(5)) { // it stays out while time advances
		fmt.Println("nothing else is due")
	}
	fmt.Println(store.Stats().Out, "out")
	fmt.Println(slow.Reschedule(hour(9), []byte("at last")))
	item, err := store.Get("https://example.com/")
	fmt.Println(item.ID, item.At.UTC().Format("15:04"), string(item.Data), err)
	// Output:
	// <nil>
	// 1 out
	// <nil>
	// https://example.com/ 09:00 at last <nil>
}

// Record.Delete removes a page when a visit finds that it is gone, and Store.Delete at any time.
func ExampleRecord_Delete() {
	store, remove := temporary(satstore.Options{Start: hour(1)})
	defer remove()
	_, err := store.AddBatch([]satstore.Item{
		{ID: "https://example.com/", At: hour(1)},
		{ID: "https://example.com/gone", At: hour(2)},
		{ID: "https://example.com/login", At: hour(2)},
	})
	if err != nil {
		panic(err)
	}
	if err := store.Delete("https://example.com/login"); err != nil {
		panic(err)
	}
	for record, err := range store.Due(context.Background(), hour(3)) {
		if err != nil {
			panic(err)
		}
		fmt.Println(record.At().UTC().Format("15:04"), record.ID)
		if strings.HasSuffix(string(record.ID), "gone") {
			err = record.Delete()
		} else {
			err = record.Reschedule(hour(5), record.Data)
		}
		if err != nil {
			panic(err)
		}
	}
	fmt.Println(store.Delete("https://example.com/gone"))
	// Output:
	// 01:00 https://example.com/
	// 02:00 https://example.com/gone
	// satstore: no record has this id
}
