package cockpit

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/spinneret-go/spinneret/archive"
)

// importing are the flags of import.
type importing struct{ salvage bool }

func (m *importing) flags(fs *flag.FlagSet) {
	fs.BoolVar(&m.salvage, "salvage", false, "accept everything after damage that looks like a record")
}

// run indexes files that other programs wrote. It does not move them.
func (m *importing) run(_ context.Context, in call) (err error) {
	if len(in.args) == 0 {
		return errUsage
	}
	a, err := archive.Open(in.dir, archive.Options{Salvage: m.salvage})
	if err != nil {
		return err
	}
	found, err := a.Import(in.args...)
	for _, d := range found.Damage {
		fmt.Fprintf(in.log, "%s: %d bytes from byte %d on: %v\n", d.File, d.Length, d.Offset, d.Err)
	}
	fmt.Fprintf(in.out, "%s, %s, %s damaged\n", counted(found.Files, "file"),
		counted(found.Versions, "version"), counted(found.Damaged, "byte"))
	return errors.Join(err, a.Close())
}
