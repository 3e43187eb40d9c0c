package archive

// Report is the result of indexing WARC files, or of [Archive.Verify].
type Report struct {
	Files    int
	Versions int
	Records  int64 // that Verify has read
	Unnamed  int   // versions without an address, because they share a member with others

	// Damage lists the first thousand damaged parts. Faults is the number of all of them, and
	// Damaged their known size in bytes.
	Damage  []Fault
	Faults  int
	Damaged int64

	// Erased is the number of versions that Erase has removed.
	Erased int

	// Missing are the files that belong to the archive and do not exist.
	Missing []string
}

// maxDamage bounds the list in a report: files may be hostile.
const maxDamage = 1000

// add adds a damaged part.
func (r *Report) add(d Fault) {
	r.Faults++
	if r.Damaged += d.Length; len(r.Damage) < maxDamage {
		r.Damage = append(r.Damage, d)
	}
}

// count adds one file.
func (r *Report) count(t *tail) {
	r.Files++
	r.Versions += t.Versions
	r.Unnamed += t.Unnamed
	for _, d := range t.Damage {
		r.add(d)
		r.Damaged -= d.Length
	}
	r.Faults += t.Faults - len(t.Damage)
	r.Damaged += t.Damaged
}
