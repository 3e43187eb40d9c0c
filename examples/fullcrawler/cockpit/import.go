package cockpit

import (
	"context"
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/archive"
)

// importFiles indexes files that other programs wrote. It does not move them.
func importFiles(_ context.Context, in call) (err error) {
	if len(in.args) == 0 {
		return errUsage
	}
	a, err := archive.Open(in.dir, archive.Options{})
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
