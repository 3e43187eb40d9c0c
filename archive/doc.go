// Package archive keeps every version of every page, and finds it by URL and time.
//
//	web, err := archive.Open(dir, archive.Options{})
//	_, err = web.Append(archive.Capture{URL: url, Time: time.Now(), Head: head, Body: body})
//	version, err := web.At(url, lastTuesday)
//	body, err := web.Body(version)
//
// An [Archive] is a directory of WARC files, which any WARC tool can read, and an index that can be
// rebuilt from them. [Archive.Snapshot] reads a whole site as of a time, at the speed of the disk;
// [Archive.Import] adds files of other programs, and [Archive.Erase] removes captures for good.
// Package archivehttp records the responses of an http.Client, replay shows an archive in a browser,
// archivefs as files, and export converts it.
//
// # Trust
//
// The body of a page may contain bytes that look like records. Each record therefore has the
// unpredictable ID of its file, so even after damage such bytes are never returned as pages. Damage
// is reported with file, offset and length: see [Archive.Recovered] and [Archive.Verify]. It loses
// only the records that it hits, and bodies are verified when they are read. The index keeps the
// entries of a file that has become shorter, so the loss stays visible.
//
// Files can be read by their owner alone, and secrets in heads are not recorded; see
// [Options.Redact].
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
// One process can write an archive at a time. Beside it, any number can read with
// [Options.ReadOnly]: they see what was appended within a second, and nobody waits for anybody. The
// goroutines of the writer may append and query concurrently. A background goroutine writes the index
// when there is enough to write, and then ends. Only Close waits for it.
//
// # Limits
//
// Each of [Options.Compressors] uses up to 7 MiB, and one capture of up to 4 MiB; larger captures
// are written directly to the file. The index uses about 3 bytes of memory per entry, up to 48 MiB
// for each of its few files, and 60 MB for up to 262,144 new entries. A URL may have 64 KiB.
//
// # Reading the source
//
// FORMAT.md describes the files. A capture goes through archive.go, pending.go (what it repeats),
// files.go, encoder.go and output.go to the disk, and back through pending.go to index.go. lookup.go
// and version.go find it again; body.go and response.go read it; snapshot.go and document.go read
// many. recover.go indexes what the index lacks, import.go files of other programs, and verify.go
// compares both. follow.go is a reader beside a writer. erase.go removes captures: erasescan.go decides
// what goes, erasemove.go writes anew what referred to it, and erasefill.go makes the holes.
package archive
