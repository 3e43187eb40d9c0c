// Package warc reads and writes WARC files, record by record.
//
//	r := warc.NewReader(file, warc.ReaderOptions{Verify: true})
//	for record, err := range r.Records() {
//		if errors.Is(err, warc.ErrDamaged) {
//			continue // the walk goes on behind the damage
//		}
//		...
//	}
//
// A [Reader] takes WARC 1.0 and 1.1, plain, as gzip members or as zstd frames, also mixed in one
// file, and streams: a block is never held as a whole. An [Encoder] turns one record into one gzip
// member or zstd frame, so that a reader can start at any of them.
//
// # What is tolerated
//
// Silently: any version "WARC/" and a digit; header lines that end in a bare LF, that are
// continued on the next line or that hold bytes that are no UTF-8; fields of unknown name; angle
// brackets around any URI; blank lines between records, too many or too few; several records in
// one member (they have no address of their own then); an unknown digest algorithm.
//
// As a [DamageError], after which the walk goes on at the next thing that can be read as the
// beginning of a record, compressed as the last one was: broken compression and checksums, a header
// without end or without a usable Content-Length, a block that ends too early or is followed by
// anything but a record, and with Verify a block that does not have its digest. To find records
// that begin inside of the damage the source has to be an [io.Seeker]; otherwise the search starts
// where reading has come. Damage can be made to look like records everywhere; where a file was read
// a dozen times for that, parts of it are passed over.
//
// ARC, the format before WARC, is damage from its first byte on. A failure to read the source is
// no damage and ends the walk.
//
// # Concurrency
//
// Nothing in this package may be used by two goroutines at once, and nothing runs by itself.
//
// # Limits
//
// A header may have 1 MiB ([ReaderOptions.MaxHeader]), a zstd window 32 MiB.
package warc
