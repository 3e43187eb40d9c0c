// Package satstore keeps records by the time they are next needed.
//
// A crawler that comes back to each page at its own interval reads and rewrites one record for each
// visit. In a B-tree each is a random read and a random write. Here records lie in buckets by the
// slot, a unit of time, in which they are due; a slot is read in one sequential pass, and what is
// given back is written in large pieces to the buckets of later slots:
//
//	for record, err := range store.Due(ctx) {
//		... // visit record.ID, in any goroutine, and then:
//		record.Reschedule(slot, record.Data)
//	}
//	store.Advance()
//
// It is SAT (Tamura and Kitsuregawa, "Secondary storage management for multi-periodic updates").
//
// # Shape
//
// One file holds all buckets. Far ones are coarse and are split when they come near. An index from
// ids to numbers and one from numbers to buckets let [Store.Add] tell what is known, and
// [Store.Update] leave messages that are merged when a record is next due.
//
// # Durability
//
// What was done before a [Store.Sync] that returned nil survives a crash of the process and of the
// machine; without calling it, so does what is older than Options.Commit. A crash leaves a prefix
// of the changes, with each record there once. What is damaged is found and is a [CorruptError].
//
// # Concurrency
//
// One process may open a directory. Any number of goroutines may give records back while one reads
// the slot; [Shards] spread over cores and disks. A goroutine commits the log until Close.
//
// # Limits
//
// Memory is Options.Buffer, 3.3 bytes for each record ever added (2 for the bucket index, the rest
// for filters of ids), and 100 for each one added since a checkpoint. Opening after a crash replays
// a log of about the size of the buffers, and reads as much or 32 bytes for each record.
package satstore
