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

// Start starts one of the programs in its directory. Its output goes to a file.
func Start(dir, name string, args ...string) (*exec.Cmd, error) {
	out, err := os.Create(outputName(dir, name))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(filepath.Join(dir, name), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	return cmd, cmd.Start()
}

// Output returns the end of the output of a program.
func Output(dir, name string) []byte {
	text, _ := os.ReadFile(outputName(dir, name))
	return text[max(0, len(text)-2000):]
}

func outputName(dir, name string) string { return filepath.Join(dir, name+".out") }
