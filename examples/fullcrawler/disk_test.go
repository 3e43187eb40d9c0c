package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// A disk can be full. dir is a directory on it.
type disk interface {
	dir() string
	prepare(random *rand.Rand) // for a run during which it gets full
	fill(random *rand.Rand)    // in the middle of that run
	empty()
	env() []string // of all runs
}

// newDisk returns a small disk of its own where this process may mount one, and else a limit on the
// size of files.
func newDisk(t *testing.T) disk {
	if d, ok := mountDisk(t); ok {
		return d
	}
	return &limitedFiles{at: t.TempDir()}
}

// limitedFiles is a disk whose files may grow up to a size, from the beginning of a run.
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
