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
	err = s.crawl(ctx, trial, out)
	var exit *exec.ExitError
	broken := errors.As(err, &exit)
	if err != nil && !broken {
		return err
	}
	verdicts := trial.Verdicts()
	if len(trial.Web.Log()) == 0 {
		return errors.New("webtest: no request arrived; does the crawler take the seed, use http_proxy, and with -tls " +
			"accept any certificate? see docs/polite.md for other ways")
	}
	if err := writers[s.format](report, verdicts); err != nil {
		return err
	}
	found := make(map[certificate.Result]bool)
	for _, v := range verdicts {
		found[v.Result] = true
	}
	switch {
	case found[certificate.Failed]:
		return errImpolite
	case !found[certificate.Passed]:
		return errors.New("webtest: nothing to judge: too few requests arrived to test anything")
	case broken && verdicts[len(verdicts)-1].Result != certificate.Passed: // completeness; of -static alone, it is untested
		return fmt.Errorf("webtest: the crawler ended with %w before it had all pages; until then it was polite", exit)
	}
	return nil
}

// own are the hosts of services that the crawler itself uses: no part of the web has these names.
const own = "localhost,127.0.0.1,::1"

// crawl runs the command until it ends, or waits for ctx if there is none. An *exec.ExitError means
// that the command failed.
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
	cmd.WaitDelay = 10 * time.Second
	killRest := inGroup(cmd)
	defer killRest()
	cmd.Env = append(os.Environ(), "no_proxy="+own, "NO_PROXY="+own, "all_proxy=", "ALL_PROXY=")
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"} {
		value := proxy.String()
		if s.direct() {
			value = ""
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(out, "webtest: the crawler was stopped; what it did until then is judged")
		return nil
	case err != nil:
		return fmt.Errorf("webtest: run the crawler: %w", err)
	}
	return nil
}
