package vfs_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// Synced data survives a power failure. Unsynced data may be lost.
func Example() {
	disk := vfs.NewMem()
	f, err := disk.Create("file")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = f.WriteAt([]byte("synced, "), 0)
	fmt.Println(err, f.Sync(), disk.Sync())
	_, err = f.WriteAt([]byte("or not"), 8)
	fmt.Println(err)
	kept, lost := false, false
	for seed := range uint64(100) {
		found := disk.Crash(rand.New(rand.NewPCG(seed, 0)))
		switch string(found.Data("file")) {
		case "synced, or not":
			kept = true
		case "synced, ":
			lost = true
		}
	}
	fmt.Println(kept, lost)
	// Output:
	// <nil> <nil> <nil>
	// <nil>
	// true true
}
