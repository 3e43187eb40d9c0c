package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/fetch/webtest/certificate"
)

// errImpolite means that a check has failed. The report says which one.
var errImpolite = errors.New("webtest: the crawler is impolite")

// check is how a crawler is judged.
type check struct {
	delay    time.Duration
	limit    time.Duration
	format   string
	complete bool
	command  []string
}

// writers write a report in each format.
var writers = map[string]func(io.Writer, []certificate.Verdict) error{
	"table": certificate.WriteTable, "json": certificate.WriteJSON, "junit": certificate.WriteJUnit,
}

// direct reports whether the crawler connects to the hosts by itself.
func (c check) direct() bool {
	return slices.ContainsFunc(c.command, func(word string) bool {
		return strings.Contains(word, "{hosts}") || strings.Contains(word, "{resolver}")
	})
}

// judge runs the crawler and reports on it.
func (s settings) judge(ctx context.Context, report, out io.Writer) (err error) {
	trial, err := certificate.Start(certificate.Options{
		Web: s.web, Delay: s.delay, Complete: s.complete, Proxied: len(s.command) > 0 && !s.direct(),
	})
	if err != nil {
		return explained(err)
	}
	defer func() { err = errors.Join(err, trial.Web.Close()) }()
	if s.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.limit)
		defer cancel()
	}
	if err := s.crawl(ctx, trial, out); err != nil {
		return err
	}
	verdicts := trial.Verdicts()
	if len(trial.Web.Log()) == 0 {
		return errors.New("webtest: no request arrived; does the crawler take the seed, and use http_proxy?" +
			" see docs/polite.md for other ways")
	}
	if err := writers[s.format](report, verdicts); err != nil {
		return err
	}
	if slices.ContainsFunc(verdicts, func(v certificate.Verdict) bool { return v.Result == certificate.Failed }) {
		return errImpolite
	}
	return nil
}

// crawl runs the command until it ends, or waits for ctx if there is none.
func (s settings) crawl(ctx context.Context, trial *certificate.Trial, out io.Writer) error {
	proxy, err := trial.Web.Proxy()
	if err != nil {
		return err
	}
	resolver, err := trial.Web.Resolver()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "webtest")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	hosts := filepath.Join(dir, "hosts")
	if err := errors.Join(writeHosts(hosts, trial.Web), writeHosts(s.hostFile, trial.Web)); err != nil {
		return err
	}
	fmt.Fprintf(out, "webtest: seed %s, HTTP proxy %s, resolver %s\n", trial.Seed(), proxy, resolver)
	if len(s.command) == 0 {
		<-ctx.Done()
		return nil
	}
	words := strings.NewReplacer("{seed}", trial.Seed(), "{proxy}", proxy.String(),
		"{resolver}", resolver.String(), "{hosts}", hosts)
	args := make([]string, len(s.command))
	for i, word := range s.command {
		args[i] = words.Replace(word)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), "no_proxy=", "NO_PROXY=")
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"} {
		value := proxy.String()
		if s.direct() {
			value = ""
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(out, "webtest: the crawler was stopped; what it did until then is judged")
	case errors.As(err, &exit):
		fmt.Fprintf(out, "webtest: the crawler ended with %v\n", exit)
	case err != nil:
		return fmt.Errorf("webtest: run the crawler: %w", err)
	}
	return nil
}
