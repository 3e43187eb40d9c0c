// Package archive keeps what was fetched, as WARC 1.1 files.
//
// An [Archive] is a directory. [Archive.Append] adds one [Capture], the answer to one request, and
// tells where it went. Any tool that reads WARC can read the files, while they grow as well.
//
// # Shape
//
// A capture becomes a response record and, if the request is known, a request record before it;
// each names the other. Records are compressed one by one, so that a reader can start at any
// [Location]. Each file opens with a warcinfo record. A file that is being written is called
// NAME.open; it is renamed to NAME when it is finished, and never touched again.
//
// # Durability
//
// A capture is in the file with all its records or not at all. Once Append returns nil it survives
// the death of the process, kill -9 included. A power cut loses at most what was appended since
// the last sync, see [Options.SyncEvery] and [Archive.Sync]; a finished file is safe. When the disk
// is full or fails, the file is cut back to its last whole capture and Append says so; it can be
// called again, and goes on as soon as the disk does.
//
// A file that still ends in .open after its process died, or its disk failed, holds every capture
// that was acknowledged and after them perhaps some or all of one more. It is never appended to,
// nor is any other old file.
//
// # Concurrency
//
// Several goroutines may append; they compress at the same time and write in turn. There is no
// background goroutine. Several archives, of several processes too, may share one directory.
//
// # Limits
//
// The caller's Body is never copied. Each of [Options.Compressors] holds up to 7 MiB: its tables,
// and the compressed form of one capture of up to 4 MiB. A larger one is compressed straight into
// the file, and the other goroutines wait for it. URLs may have 64 KiB.
//
// # Format
//
// WARC 1.1 (ISO 28500:2017), one gzip member per record, SHA-1 digests in base 32, dates to the
// microsecond. It does not read, index, deduplicate or repair files.
package archive
