// Package archive keeps every version of every page, and finds it by URL and time.
//
//	web, err := archive.Open(dir, archive.Options{})
//	_, err = web.Append(archive.Capture{URL: url, Time: time.Now(), Head: head, Body: body})
//	version, err := web.At(url, lastTuesday)
//	body, err := web.Body(version)
//
// An [Archive] is a directory of WARC files, which any WARC tool can read, and an index that can be
// rebuilt from them. [Archive.Snapshot] reads a whole site as of a time, [Archive.Import] adds files
// of other programs, and [Archive.Erase] removes captures for good. Package archivehttp records an
// http.Client, replay shows an archive in a browser, and export converts it.
//
// # Trust and damage
//
// The body of a page may contain bytes that look like records. Each record therefore has the
// unpredictable ID of its file, so even after damage such bytes are never returned as pages. Damage
// loses only the records that it hits. [Archive.Recovered] and [Archive.Verify] report it, even if the
// index is damaged as well, and bodies are verified when they are read. What a disk cannot read is
// indexed once it can be read. Only the owner may read the files; see also [Options.Redact].
//
// # Durability
//
// A capture is stored with all of its records and its index entry, or not at all. Once Append
// returns nil, it survives a crash of the process. A power failure loses at most the captures since
// the last sync, see [Options]. If the disk is full, the file is cut back to its last capture.
//
// # Concurrency and limits
//
// One process can write an archive at a time, in several goroutines. Beside it, any number can read,
// see [Options.ReadOnly]. A background goroutine writes the index, and then ends; Close waits for it.
// Each of [Options.Compressors] uses up to 11 MiB; larger captures go directly to the file. The index
// takes some 3 bytes of memory per entry, and 60 MB for new ones. A URL may have 64 KiB.
//
// # Reading the source
//
// FORMAT.md describes the files. A capture goes through archive.go, pending.go (what it repeats),
// files.go, encoder.go and output.go, and back to index.go. lookup.go and version.go find it again,
// body.go, response.go and snapshot.go read it. recover.go indexes what the index lacks, follow.go
// reads beside a writer, and erase.go leads through erasescan.go (what goes), erasemove.go, erasefile.go
// (the plan on disk, and how a file is written anew) and erasefill.go.
package archive
