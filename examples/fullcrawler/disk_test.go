package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// A disk can run full. dir is a directory on it.
type disk interface {
	dir() string
	prepare(random *rand.Rand) // before a run during which it will run full
	fill(random *rand.Rand)    // during that run
	empty()
	env() []string // of all runs
}

// newDisk returns a small disk if this process may mount one; otherwise a limit on file sizes.
func newDisk(t *testing.T) disk {
	if d, ok := mountDisk(t); ok {
		return d
	}
	return &limitedFiles{at: t.TempDir()}
}

// limitedFiles is a disk whose files may grow to a random size during a run.
type limitedFiles struct {
	at    string
	limit int
}

func (d *limitedFiles) dir() string               { return d.at }
func (d *limitedFiles) prepare(random *rand.Rand) { d.limit = 1 + random.IntN(300_000) }
func (d *limitedFiles) fill(*rand.Rand)           {}
func (d *limitedFiles) empty()                    { d.limit = 0 }

func (d *limitedFiles) env() []string {
	if d.limit == 0 {
		return nil
	}
	return []string{fmt.Sprint("PROOF_FILE_SIZE=", d.limit)}
}
