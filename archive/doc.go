// Package archive keeps every version of every page, and finds it by URL and time.
//
//	web, err := archive.Open(dir, archive.Options{})
//	_, err = web.Append(archive.Capture{URL: url, Time: time.Now(), Head: head, Body: body})
//	version, err := web.At(url, lastTuesday)
//	body, err := web.Body(version)
//
// An [Archive] is a directory of WARC files, which any WARC tool can read, and an index that can be
// rebuilt from them. [Archive.Snapshot] reads a whole site as of a time, at the speed of the disk;
// [Archive.Import] adds files of other programs. Package archivehttp records the responses of an
// http.Client, replay shows an archive in a browser, archivefs as files, and export converts it.
//
// # Trust
//
// The body of a page may contain bytes that look like records. Each record therefore has the
// unpredictable ID of its file, so even after damage such bytes are never returned as pages. Damage
// is reported with file, offset and length: see [Archive.Recovered] and [Archive.Verify]. The index
// keeps the entries of a file that has become shorter, so the loss stays visible.
//
// # Durability
//
// A capture is stored with all of its records and its index entry, or not at all. Once Append
// returns nil, it survives a crash of the process: [Open] indexes the ends of the files that the
// index lacks. A power failure loses at most the captures since the last sync, see [Options]. If
// the disk is full, the file is cut back to its last complete capture.
//
// # Concurrency
//
// One process can have an archive open at a time, or several with [Options.ReadOnly]. Its
// goroutines may append and query concurrently. A background goroutine writes the index when there
// is enough to write, and then ends. Only Close waits for it.
//
// # Limits
//
// Each of [Options.Compressors] uses up to 7 MiB, and one capture of up to 4 MiB; larger captures
// are written directly to the file. The index uses about 3 bytes of memory per entry, up to 48 MiB
// for each of its few files, and 60 MB for up to 262,144 new entries. A URL may have 64 KiB.
//
// FORMAT.md describes the files. Start reading with archive.go, pending.go and files.go.
package archive
