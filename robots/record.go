package robots

import (
	"iter"
	"strings"
)

// Record is one line of a file that neither names agents nor allows or disallows paths: what this
// package gives a meaning elsewhere, like Crawl-delay, and what it knows nothing about.
type Record struct {
	Group int    // the group in which it stands, from 1; 0 before the first
	Line  int    // in the file, from 1
	Key   string // as written
	Value string // as written, without comment and blanks around; may be empty
}

// note is how a File keeps a Record.
type note struct {
	at    uint32 // where "key:value\n" lies in the text
	group uint32
	bits  uint32 // the kind in kindBits, above it the line
}

func (n note) kind() kind { return kind(n.bits & (1<<kindBits - 1)) }

func (n note) record(text string) Record {
	line, _, _ := strings.Cut(text[n.at:], "\n")
	key, value, _ := strings.Cut(line, ":")
	return Record{int(n.group), int(n.bits >> kindBits), key, value}
}

func (n note) value(text string) string { return n.record(text).Value }

// Records yields all records of the file in its order. Those of a key that is not understood here
// are among them, so that a new one can be read without a new version of this package.
//
// A group of the file begins with its first User-agent line, and has all that stands before the
// first User-agent line of the next.
func (f *File) Records() iter.Seq[Record] { return eachRecord(f.notes, f.text) }

// Records yields the records that stand in the crawler's groups, in the order of the file. Those
// that by their meaning belong to no group are left out: Sitemap, Host, Clean-param, License.
func (r Rules) Records() iter.Seq[Record] {
	if r.set == nil {
		return func(func(Record) bool) {}
	}
	return eachRecord(r.set.notes, r.set.text)
}

func eachRecord(notes []note, text string) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for _, n := range notes {
			if !yield(n.record(text)) {
				return
			}
		}
	}
}

// values yields the values of the records of one kind in the crawler's groups.
func (r Rules) values(of kind) iter.Seq[string] {
	if r.set == nil {
		return func(func(string) bool) {}
	}
	return values(r.set.notes, r.set.text, of)
}

// values yields the values of the notes of one kind.
func values(notes []note, text string, of kind) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, n := range notes {
			if n.kind() == of && !yield(n.value(text)) {
				return
			}
		}
	}
}
