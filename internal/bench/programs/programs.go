// Package programs builds and samples the programs that measurements start.
package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds fullcrawler and webtest into a directory. The working directory must be the root of
// this module.
func Build(dir string) error {
	for name, from := range map[string]string{
		"fullcrawler": "../../examples/fullcrawler", "webtest": "../../fetch/webtest/cmd/webtest",
	} {
		build := exec.Command("go", "build", "-C", from, "-o", filepath.Join(dir, name), ".")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
	}
	return nil
}
