// Package archive keeps every version of every page, and finds it by URL and time.
//
// An [Archive] is a directory of WARC files, which any tool that knows WARC can read, and an index.
// [Archive.Append] adds a [Capture], the answer to one request. [Archive.At] finds the [Version] of
// a URL that was valid at a time, [Archive.Versions] all of them. [Archive.Snapshot] finds those of
// a whole site or of everything, and reads them as fast as the disk can; [Snapshot.Scan] has them
// analysed by many workers. [Archive.FS] is a site as it was, as files. [Archive.Import] takes in
// WARC files of others. After the paper of Tamura and Kitsuregawa on mining a web archive.
//
// # Shape
//
// A capture becomes a response record and, if the request is known, a request record before it. A
// body that is as it was becomes a revisit record. Records are compressed one by one. A file that
// is being written is called NAME.open. The index is a B-tree from the SURT of the URL and the time
// to the address of the record; a version is valid until the next one of its URL.
//
// # Durability
//
// A capture is in its file with all its records, and in the index, or not at all. Once Append
// returns nil it survives the death of the process: what the index lacks then is read from the ends
// of the files by [Open], which cuts off a capture that is not whole and finishes the files of the
// dead. A power cut loses at most what came after the last sync, see [Options.SyncEvery]. When the
// disk is full the file is cut back to its last whole capture. [Repair] makes a lost index anew.
//
// # Concurrency
//
// One process may open an archive at a time. Its goroutines may append, which compresses at the
// same time and writes in turn, and query meanwhile. There is no goroutine in the background.
//
// # Limits
//
// A capture's body is never copied. Each of [Options.Compressors] holds up to 7 MiB: its tables,
// and the compressed form of one capture of up to 4 MiB; a larger one goes straight into the file.
// Up to 131,072 entries wait in memory for the index, some 40 MB, with 16 MiB more of URLs that are
// too long for a key. URLs may have 64 KiB.
//
// # Format
//
// WARC 1.1 (ISO 28500:2017), see FORMAT.md, which describes the index too. Package
// archive/warc has the records, archive/scan runs workers, archive/export writes CDXJ and WACZ.
package archive
