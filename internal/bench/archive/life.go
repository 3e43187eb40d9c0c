package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed life/main.go
var lifeSource []byte

// life runs the same program on archives of this code and of an older version, alternating.
func life(o options) error {
	dir, err := os.MkdirTemp(o.dir, "bench-archive-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	here, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	trees := []string{here}
	if o.old != "" {
		trees = append(trees, o.old)
	}
	var programs []string
	for i, tree := range trees {
		program, err := buildLife(filepath.Join(dir, fmt.Sprint("build-", i)), tree)
		if err != nil {
			return err
		}
		programs = append(programs, program)
	}
	seen := make([]map[string][]float64, len(programs))
	for range o.rounds {
		for i, program := range programs {
			if err := liveOnce(dir, program, o.entries, &seen[i]); err != nil {
				return err
			}
		}
	}
	fmt.Printf("life      %d entries, %d rounds, medians\n", o.entries, o.rounds)
	for _, row := range lifeRows {
		fmt.Printf("life      %-44s %12.1f", row.text, median(seen[0][row.name]))
		if len(seen) > 1 {
			now, before := median(seen[0][row.name]), median(seen[1][row.name])
			fmt.Printf("   old %12.1f   new/old %6.3f", before, now/before)
		}
		fmt.Println()
	}
	return nil
}

var lifeRows = []struct{ name, text string }{
	{"FillPerSecond", "entries in random order, per second"},
	{"IndexBytes", "index bytes per entry"},
	{"AppendPerSecond", "captures of 2 KB, per second"}, {"AtMicros", "At, us"},
	{"BusyAtMicros", "At during appends, us"}, {"WorstAt", "slowest At during appends, ms"},
	{"WorstAppend", "slowest Append during lookups, ms"}, {"Recovery", "Open after a crash, s"},
	{"VisitedAt", "At after 20,000 unchanged visits, us"},
	{"VisitedAppend", "Append after 20,000 unchanged visits, us"},
}

// buildLife compiles the program against the library in a tree.
func buildLife(dir, tree string) (program string, err error) {
	mod := fmt.Sprintf("module life\n\ngo 1.26.0\n\nrequire github.com/spinneret-go/spinneret v0.0.0\n\n"+
		"replace github.com/spinneret-go/spinneret => %s\n", tree)
	err = errors.Join(os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, "main.go"), lifeSource, 0o644),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644))
	for _, args := range [][]string{{"mod", "tidy"}, {"build", "-o", "life"}} {
		if err != nil {
			return "", err
		}
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		if text, failed := cmd.CombinedOutput(); failed != nil {
			err = fmt.Errorf("go %v in %s: %w\n%s", args, tree, failed, text)
		}
	}
	return filepath.Join(dir, "life"), err
}

func liveOnce(dir, program string, entries int, seen *map[string][]float64) error {
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	cmd := exec.Command(program, work, fmt.Sprint(entries))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	var once map[string]float64
	if err := json.Unmarshal(out, &once); err != nil {
		return err
	}
	if *seen == nil {
		*seen = map[string][]float64{}
	}
	for name, value := range once {
		(*seen)[name] = append((*seen)[name], value)
	}
	return nil
}
