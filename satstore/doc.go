// Package satstore stores records by the time when each is next due. It holds the crawl state of
// billions of pages on one disk.
//
// A crawler that revisits each page at its own interval reads and rewrites one record per visit.
// In a B-tree that is a random read and a random write. A [Store] groups records into buckets by
// due time instead. It reads a bucket in one sequential pass, and writes rescheduled records in
// large pieces to later buckets:
//
//	if _, err := store.Add("https://example.com/", time.Now(), nil); err != nil {
//		return err
//	}
//	for record, err := range store.Due(ctx, time.Now()) {
//		if err == nil { // fetch record.ID, in any goroutine; then
//			err = record.Reschedule(time.Now().Add(24*time.Hour), record.Data)
//		}
//		if err != nil {
//			return err
//		}
//	}
//
// The design is SAT (Tamura and Kitsuregawa, "Secondary storage management for multi-periodic
// updates"), with buckets that grow coarser with their distance, as in a timing wheel.
//
// A change survives kill -9 once its method has returned, and a power failure 10 ms later ([Options].Commit)
// or after [Store.Sync]. A crash leaves a prefix of the changes, each record exactly once. Where files cannot
// be mapped (JavaScript, AIX, Solaris), kill -9 costs as much as a power failure, and nothing keeps a second
// process out. Damage is detected and reported as a [CorruptError]. A full disk makes the store read-only and
// loses nothing: [ErrReadOnly].
//
// A visit takes about 0.6 µs and 300 bytes of sequential I/O. A record takes 4 bytes of memory. After its end it
// takes 2 until all of the 65,536 records that were added together have ended. (If [Record.Delete] ended it
// shortly before a kill, that may never be; [Repair] frees those.) Buffers take [Options].Buffer. Ids added since
// the last checkpoint, and messages for records that are due, may each take as much; ids four times that while the
// disk is slow to sync. Flushes, checkpoints and merges run in the background, in goroutines that end with
// [Store.Close]. README.md has measurements, and what follows from them for 10⁹ records.
//
// There are no queries by anything but due time. [Store.Get] is slow, and one process may open a directory at a
// time: to back a store up, close it and copy that. A Store is safe for concurrent use, but has one Due at a time.
//
// Reading the source: README.md says where to begin, FORMAT.md describes the files.
package satstore

// Words of the source, one for each idea:
//
//   - slot: the number of a [Options].Unit of time, counted from 1970
//   - bucket: the records of one or more slots, and the messages for them
//   - part: the records or the messages of a bucket, a sequence of numbered entries
//   - record: its number in its part never changes; its sequence number, seq, never in its life
//   - mail: messages in memory, by the seq of their record
//   - bucket index, places: the bucket of each seq, or 0 for a record that is gone
//   - block: 64 KiB of entries with a checksum; extent: some blocks in the file, written at once
//   - group: entries in buffers that become an extent; in the log, changes that are written at once
//   - page: 4 KiB of a buffer; in the bucket index, 65,536 places
//   - chunk: a block in memory whose records are handed out
//   - split: the move of the entries of a bucket to other buckets
//   - aside: what could not be read; a bucket that is set aside has records that a split could not move
//   - view: the content of buckets at one moment
