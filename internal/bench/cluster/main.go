// Command cluster runs a measurement of examples/cluster, which is part of that module's tests:
//
//	go run ./cluster messages -rounds 3
//	go run ./cluster scaling
//
// It builds the test binary, which can also run as a program, and starts it as one.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	dir, err := os.MkdirTemp("", "bench-cluster-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "bench")
	build := exec.Command("go", "test", "-C", "../../examples/cluster", "-c", "-o", program, ".")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	measure := exec.Command(program, args...)
	measure.Env = append(os.Environ(), "SPINNERET_CLUSTER_PROGRAM=unwatched")
	measure.Stdout, measure.Stderr = os.Stdout, os.Stderr
	return measure.Run()
}
