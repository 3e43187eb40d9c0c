package stage

import (
	"errors"
	"io"
	"os"
)

// ReplaceFile replaces a file atomically: it has either the old or the new content, even after a
// power failure.
func ReplaceFile(name string, data []byte) error {
	return ReplaceWith(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// ReplaceWith is ReplaceFile for data that is not in memory.
func ReplaceWith(name string, write func(io.Writer) error) error {
	temporary := name + ".new"
	f, err := os.Create(temporary)
	if err != nil {
		return err
	}
	err = write(f)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}
