package stage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// formLine returns the first line of a saved file: what it is, its version, and the CRC-32C of
// these. The line is the same in all versions, so that each can tell another one from damage.
func formLine(kind string, version int) string {
	form := fmt.Sprintf("%s %d", kind, version)
	return fmt.Sprintf("%s %08x\n", form, durable.Sum([]byte(form)))
}

var errForm = errors.New("its first line is damaged, or it is something else")

// checkForm checks a first line. The error for another version wraps durable.ErrVersion.
func checkForm(line, kind string, version int) error {
	form := line[:max(strings.LastIndexByte(line, ' '), 0)]
	found := 0
	if _, err := fmt.Sscanf(strings.TrimPrefix(form, kind), "%d", &found); err != nil ||
		formLine(kind, found) != line {
		return errForm
	}
	if found != version {
		return fmt.Errorf("%w: %s", durable.ErrVersion, form)
	}
	return nil
}
