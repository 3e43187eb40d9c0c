// Package satstore keeps the state of pages, or of anything else, by the time each is next due.
//
// A crawler that comes back to each page at its own interval reads and rewrites one record for
// each visit. In a B-tree each is a random read and a random write. Here records lie in buckets
// by the time when they are due. A bucket is read in one sequential pass, and what is given back
// is written in large pieces to the buckets of later times:
//
//	store.Add("https://example.com/", time.Now(), nil)
//	for record, err := range store.Due(ctx, time.Now()) {
//		if err != nil {
//			return err
//		}
//		// Visit record.ID, in any goroutine, and then:
//		record.Reschedule(time.Now().Add(24*time.Hour), record.Data)
//	}
//
// It is SAT (Tamura and Kitsuregawa, "Secondary storage management for multi-periodic updates").
//
// # Shape
//
// Times are counted in units, an hour by default. Near units have a bucket each; further ones
// share buckets, which are split when they come near. One index tells which ids are known,
// another one which bucket holds a record, so that an [Store.Update] can leave a message there.
//
// # Durability
//
// A change whose method returned nil survives a crash of the process, kill -9 included. After 10
// ms (Options.Commit), or once [Store.Sync] returned nil, it survives a power failure too; where
// files cannot be mapped (Plan 9, JavaScript), both crashes are alike. A crash leaves a prefix of
// the changes, with each record there once. Damage is found, and is a [CorruptError]. A full disk
// makes the store read-only, with all of that intact: [ErrReadOnly].
//
// # Concurrency
//
// One process may open a directory. Any number of goroutines may use the store while one walks
// over what is due. Goroutines write, checkpoint and merge until Close. No call waits for more
// than a few milliseconds of their work; FORMAT.md has the figures and the design.
package satstore
