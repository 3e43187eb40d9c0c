package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
)

// The test binary is also a broker, so that tests can kill one.
func init() { verbs = append(verbs, verb{"broker", "start one broker", 0, 0, broker}) }

// broker runs one broker until ctx ends.
func broker(fs *flag.FlagSet) action {
	o := server.Options{JetStream: true, NoSigs: true, NoLog: true}
	var cluster, routes string
	fs.StringVar(&o.StoreDir, "dir", "", "`directory` for the streams")
	fs.IntVar(&o.Port, "port", 0, "port for clients; 0: a free one")
	fs.StringVar(&o.Host, "bind", "127.0.0.1", "`address` to listen on")
	fs.StringVar(&o.ServerName, "name", "", "`name` of this broker, if it is one of several")
	fs.StringVar(&cluster, "cluster", "", "`address` and port for the other brokers")
	fs.StringVar(&routes, "routes", "", "`addresses` and ports of all brokers for each other")
	return func(ctx context.Context, _ []string, out, _ io.Writer) error {
		o.Port = cmp.Or(o.Port, server.RANDOM_PORT)
		if cluster != "" {
			host, port, err := net.SplitHostPort(cluster)
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(port)
			if err != nil {
				return err
			}
			o.Cluster = server.ClusterOpts{Name: "spinneret", Host: host, Port: n}
			for route := range strings.SplitSeq(routes, ",") {
				o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: route})
			}
		}
		s, err := serveBroker(&o)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, s.ClientURL())
		<-ctx.Done()
		s.Shutdown()
		s.WaitForShutdown()
		return nil
	}
}

// serveBroker starts a broker in this process.
func serveBroker(o *server.Options) (*server.Server, error) {
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		s.Shutdown()
		return nil, errors.New("the broker did not become ready")
	}
	return s, nil
}

// inside starts a broker in this process, with a bound of its disk, and returns its URL.
func inside(t *testing.T, maxStore int64) string {
	t.Helper()
	s, err := serveBroker(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, StoreDir: t.TempDir(), JetStream: true,
		JetStreamMaxStore: maxStore, NoSigs: true, NoLog: true,
	})
	require.NoError(t, err)
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s.ClientURL()
}

// brokers is how many brokers keep the stream in tests with replicas: two of three are a majority.
const brokers = 3

// A trio is three brokers on the loopback interface.
type trio struct {
	dir   string
	port  int             // the first port for clients; the ports for brokers are 100 higher
	addrs [brokers]string // "" means 127.0.0.1
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
			l, err := net.Listen("tcp", tr.at(i, port))
			if err != nil {
				return err
			}
			l.Close()
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
