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
// One file holds all buckets. Far ones are coarse and are split when they come near. Two indexes
// let [Store.Add] tell what is known, and [Store.Update] leave messages for when a record is due.
//
// # Durability
//
// A change whose method returned nil survives a crash of the process, kill -9 included. What was
// done before a [Store.Sync] that returned nil, or is older than Options.Commit, survives a crash
// of the machine, too; where files cannot be mapped (Plan 9, JavaScript), both crashes are alike. A
// crash leaves a prefix of the changes, with each record there once. Damage is found, and is a
// [CorruptError]. A full disk makes the store read-only, with all of that intact: [ErrReadOnly].
//
// # Concurrency
//
// One process may open a directory. Any number of goroutines may give records back while one reads
// the slot; [Shards] spread over cores and disks. A goroutine commits the log until Close.
//
// # Limits
//
// The file of buckets has up to 16 TiB. Memory is Options.Buffer, 4 MiB for the log, 3.3 bytes for
// each record ever added (2 for the bucket index, the rest for filters of ids), and 100 for each one
// added since a checkpoint. Opening after a crash replays a log of about the size of the buffers,
// and reads as much or 32 bytes for each record.
package satstore
