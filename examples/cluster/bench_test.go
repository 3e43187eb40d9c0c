package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
)

// The benchmarks are not part of the operator's program, but of the test binary:
//
//	go test -c -o bench . && SPINNERET_CLUSTER_PROGRAM=unwatched ./bench messages
//
// Figures are only valid on an otherwise idle machine.
func init() {
	verbs = append(verbs,
		verb{"messages", "measure messages per second through the broker into states", 0, 0, benchMessages},
		verb{"spread", "measure how evenly URLs and hosts are spread over processes", 1, anyNumber, benchSpread},
		verb{"scaling", "measure pages per second with 1, 2, 4 and 8 processes", 0, 0, benchScaling})
}

// servers starts one broker or three, each a process of its own, with their files in a directory
// that stop removes.
func servers(ctx context.Context, n int, log io.Writer) (urls string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "cluster-bench-")
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var commands []*exec.Cmd
	stop = func() {
		cancel()
		for _, c := range commands {
			_ = c.Wait() // it was interrupted
		}
		_ = os.RemoveAll(dir)
	}
	t := trio{dir: dir, port: 18222}
	if n == 1 {
		urls, command, err := lonely(ctx, self, filepath.Join(dir, "n1"), log)
		if command != nil {
			commands = append(commands, command)
		}
		if err != nil {
			stop()
			return "", nil, err
		}
		return urls, stop, nil
	}
	for i := range brokers {
		command := program(ctx, self, log, t.args(i)...)
		if err := command.Start(); err != nil {
			stop()
			return "", nil, err
		}
		commands = append(commands, command)
	}
	if err := t.ready(ctx); err != nil {
		stop()
		return "", nil, err
	}
	return t.urls(), stop, nil
}

// program returns this program with other arguments. It is interrupted when ctx ends.
func program(ctx context.Context, self string, log io.Writer, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, self, args...)
	c.Stderr = log
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	return c
}

// lonely starts one broker and reads its URL. If it cannot read the URL, it still returns the
// command, so that the caller can stop it.
func lonely(
	ctx context.Context, self, dir string, log io.Writer,
) (urls string, c *exec.Cmd, err error) {
	c = program(ctx, self, log, "broker", "-dir", dir)
	out, err := c.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := c.Start(); err != nil {
		return "", nil, err
	}
	urls, err = bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(urls), c, err
}

// reach connects to the brokers of a measurement.
func reach(ctx context.Context, urls string, n int, maxBytes int64) (*jet.Bus, error) {
	return jet.Connect(ctx, jet.Options{URL: urls, Replicas: n, MaxBytes: maxBytes, Name: "bench"})
}
