package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
)

// broker runs one broker until ctx ends.
func broker(fs *flag.FlagSet) action {
	var o jet.ServerOptions
	var routes string
	fs.StringVar(&o.Dir, "dir", "", "`directory` for the streams")
	fs.IntVar(&o.Port, "port", 14222, "port for clients; 0: a free one")
	fs.StringVar(&o.Bind, "bind", "127.0.0.1", "`address` to listen on")
	fs.Int64Var(&o.MaxStore, "max-store", 0,
		"maximum bytes that streams may reserve; 0: three quarters of the free disk")
	fs.StringVar(&o.Log, "log", "", "log `file` of the broker")
	fs.StringVar(&o.Name, "name", "", "`name` of this broker, if it is one of several")
	fs.StringVar(&o.Cluster, "cluster", "", "`address` and port for the other brokers")
	fs.StringVar(&routes, "routes", "",
		"`addresses` and ports of all brokers for each other, separated by commas")
	return func(ctx context.Context, _ []string, out, _ io.Writer) error {
		if routes != "" {
			o.Routes = strings.Split(routes, ",")
		}
		s, err := jet.StartServer(o)
		if err != nil {
			return err
		}
		defer s.Close()
		fmt.Fprintln(out, s.URL())
		<-ctx.Done()
		return nil
	}
}

// up runs three brokers, each in a process of its own, and restarts any that ends.
func up(fs *flag.FlagSet) action {
	dir := fs.String("dir", "brokers", "`directory` for the streams")
	port := fs.Int("port", 14222,
		"port of the first broker for clients; the others use the next ones")
	return func(ctx context.Context, _ []string, out, log io.Writer) error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		tr := trio{self: self, dir: *dir, port: *port, log: log}
		if err := tr.free(); err != nil {
			return err
		}
		var running sync.WaitGroup
		for i := range brokers {
			running.Go(func() { tr.keep(ctx, i) })
		}
		err = tr.ready(ctx)
		if err == nil {
			fmt.Fprintf(out, "three brokers are up; clients connect to\n  -nats %s\nCtrl-C ends them.\n",
				tr.urls())
		}
		running.Wait()
		return err
	}
}

// brokers is how many brokers keep each stream: two of three are a majority.
const brokers = 3

// A trio is three brokers on the loopback interface.
type trio struct {
	self  string // the program to start
	dir   string
	port  int             // the first port for clients; the ports for brokers are 100 higher
	addrs [brokers]string // "" means 127.0.0.1
	log   io.Writer
}

// at returns an address of one broker.
func (tr *trio) at(i, port int) string {
	return net.JoinHostPort(cmp.Or(tr.addrs[i], "127.0.0.1"), strconv.Itoa(port+i))
}

func (tr *trio) urls() string {
	var urls []string
	for i := range brokers {
		urls = append(urls, "nats://"+tr.at(i, tr.port))
	}
	return strings.Join(urls, ",")
}

// free returns an error if another program listens on an address that the brokers need.
func (tr *trio) free() error {
	for i := range brokers {
		for _, port := range []int{tr.port, tr.port + 100} {
			if err := jet.Free(tr.at(i, port)); err != nil {
				return fmt.Errorf("%w; if other brokers are running here, choose other ports with -port", err)
			}
		}
	}
	return nil
}

// args returns the command line of one broker.
func (tr *trio) args(i int) []string {
	var routes []string
	for i := range brokers {
		routes = append(routes, tr.at(i, tr.port+100))
	}
	return []string{
		"broker", "-name", fmt.Sprintf("n%d", i+1), "-port", fmt.Sprint(tr.port + i),
		"-bind", cmp.Or(tr.addrs[i], "127.0.0.1"), "-dir", filepath.Join(tr.dir, fmt.Sprintf("n%d", i+1)),
		"-cluster", routes[i], "-routes", strings.Join(routes, ","),
	}
}

// keep runs one broker, and restarts it if it ends before ctx does.
func (tr *trio) keep(ctx context.Context, i int) {
	for ctx.Err() == nil {
		cmd := exec.CommandContext(ctx, tr.self, tr.args(i)...)
		cmd.Stderr = tr.log
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 10 * time.Second
		if err := cmd.Run(); err != nil && ctx.Err() == nil {
			fmt.Fprintf(tr.log, "broker %d ended (%v); restarting it\n", i+1, err)
			time.Sleep(time.Second)
		}
	}
}

// ready waits until the brokers have found each other.
func (tr *trio) ready(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	bus, err := jet.Connect(attempt, jet.Options{URL: tr.urls()})
	if err != nil {
		return errors.Join(errors.New("the brokers are not ready"), err)
	}
	bus.Close()
	return nil
}
