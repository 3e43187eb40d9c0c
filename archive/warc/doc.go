// Package warc reads and writes WARC files, record by record.
//
//	r := warc.NewReader(file, warc.ReaderOptions{Verify: true})
//	for record, err := range r.Records() {
//		if errors.Is(err, warc.ErrDamaged) {
//			continue // with the records after the damage that can be trusted
//		}
//		...
//	}
//
// A [Reader] reads WARC 1.0 and 1.1, plain, as gzip members or as zstd frames, even mixed in one
// file. It streams: a block is never held in memory as a whole. An
// [Encoder] turns one record into one gzip member or zstd frame, so that a reader can start at any
// of them. It rejects records that violate the standard.
//
// # What is tolerated
//
// Silently: any version "WARC/" and a digit, in any case; header lines that end in a bare LF, that
// are continued on the next line or that are not UTF-8; unknown fields; angle brackets around any
// URI; too many or too few blank lines between records; several records in one member, which then
// have no address of their own; unknown digest algorithms.
//
// Everything else is a [DamageError]: broken compression and checksums, a header without end or
// without a usable Content-Length, a block that ends too early or is followed by anything but a
// record, and with Verify a block that does not match its digest. An error of the source is not
// damage, and ends the walk.
//
// # After damage
//
// A body may contain bytes that look like records. So a record after damage is returned only if it
// has the WARC-Warcinfo-ID that is valid there; without these IDs a file ends at its first damage.
// [ReaderOptions.Salvage] returns everything that can be read. To find records that begin inside
// the damage, the source has to be an [io.Seeker]. Hostile damage can look like records everywhere:
// after reading a file a dozen times for that, the reader skips parts of it.
//
// # Concurrency and limits
//
// No type may be used by two goroutines at once, and nothing runs in the background. A header is
// limited to 1 MiB, a zstd window to 32 MiB.
package warc
