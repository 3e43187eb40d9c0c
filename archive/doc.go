// Package archive keeps every version of every page, and finds it by URL and time.
//
//	web, err := archive.Open(dir, archive.Options{})
//	_, err = web.Append(archive.Capture{URL: url, Time: time.Now(), Head: head, Body: body})
//	version, err := web.At(url, lastTuesday)
//	body, err := web.Body(version)
//
// An [Archive] is a directory of WARC files, which any tool that knows WARC can read, and an index
// that can be made from them. [Archive.Snapshot] reads a whole site as of a time, as fast as the
// disk can; [Archive.Import] takes in files of others. Package archivehttp records what an http.Client
// gets, replay shows it in a browser, archivefs as files, and export writes it for other tools.
//
// # Trust
//
// The body of a page may hold bytes that read as records. Each record has the unpredictable ID of
// its file, so that damage cannot bring such bytes to light as pages that nobody fetched. Damage is
// reported with file, offset and length: see [Archive.Recovered] and [Archive.Verify]. An
// entry of the index is never forgotten because its file has become shorter.
//
// # Durability
//
// A capture is in its file with all its records, and in the index, or not at all. Once Append
// returns nil it survives the death of the process: [Open] reads what the index lacks from the ends
// of the files. A power failure costs at most what came after the last sync, see [Options]. When
// the disk is full the file is cut back to its last whole capture.
//
// # Concurrency
//
// One process may open an archive at a time, or many with [Options.ReadOnly]. Its goroutines may
// append and query at once. A goroutine writes the index when enough has come together, and ends;
// nobody waits for it but Close.
//
// # Limits
//
// Each of [Options.Compressors] holds up to 7 MiB, and one capture of up to 4 MiB; larger ones go
// straight into the file. Up to 262,144 entries wait for the index, some 60 MB. Of the index itself
// some 3 bytes per entry are in memory, up to 48 MiB for each of its few files. URLs have 64 KiB.
//
// The format is in FORMAT.md. To read the source begin with archive.go, then note.go and files.go
// for the way of a capture, index.go and lookup.go for the index, recover.go for what Open does.
package archive
