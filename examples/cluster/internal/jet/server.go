package jet

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ServerOptions are the options of a [Server].
type ServerOptions struct {
	Dir  string // where streams are stored; required, "" is refused
	Port int    // on the loopback interface; 0 means a free one
	Log  string // the log file; "" means no log
	Bind string // the address to listen on; "" means 127.0.0.1

	MaxStore int64 // bytes that streams may reserve; 0 means three quarters of the free disk

	Name    string   // among several servers; "" means that the server makes one up
	Cluster string   // where it listens for the others; "" means that it is alone
	Routes  []string // where all of them do, itself included; nil means that it waits for them
}

// readyWait is how long a server may take to start.
const readyWait = 20 * time.Second

// A Server is a broker inside this process. Its methods are safe for concurrent use.
type Server struct {
	inner *server.Server
}

// addresses returns where a server will listen, except on ports of its own choice.
func (o ServerOptions) addresses() (all []string) {
	if o.Port != 0 {
		all = append(all, net.JoinHostPort(o.Bind, strconv.Itoa(o.Port)))
	}
	if o.Cluster != "" {
		all = append(all, o.Cluster)
	}
	return all
}

// Free returns an error that names the address if another program listens there, or if it is not one
// of this machine. A server would not report that itself.
//
// It connects instead of listening on the port for a moment: a process that another goroutine starts
// in that moment would inherit the port and hold it until its exec, and the server would find it taken.
func Free(address string) error {
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		return fmt.Errorf("jet: listen tcp %s: %w", address, os.NewSyscallError("bind", syscall.EADDRINUSE))
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("jet: %w", err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return fmt.Errorf("jet: %w", err)
	}
	return l.Close()
}

// StartServer starts a broker and returns when it accepts connections.
func StartServer(o ServerOptions) (*Server, error) {
	if o.Dir == "" {
		return nil, errors.New("jet: a server needs a directory")
	}
	if o.Bind == "" {
		o.Bind = "127.0.0.1"
	}
	options := &server.Options{
		Host: o.Bind, Port: o.Port, ServerName: o.Name, StoreDir: o.Dir, JetStream: true,
		NoSigs: true, NoLog: o.Log == "", LogFile: o.Log, MaxPayload: 1 << 20,
		JetStreamMaxStore: o.MaxStore,
	}
	if o.Port == 0 {
		options.Port = server.RANDOM_PORT
	}
	if o.Cluster != "" {
		host, port, err := net.SplitHostPort(o.Cluster)
		if err != nil {
			return nil, fmt.Errorf("jet: cluster address: %w", err)
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			return nil, fmt.Errorf("jet: cluster address: %w", err)
		}
		options.Cluster = server.ClusterOpts{Name: "spinneret", Host: host, Port: n}
		for _, route := range o.Routes {
			options.Routes = append(options.Routes, &url.URL{Scheme: "nats", Host: route})
		}
	}
	for _, address := range o.addresses() {
		if err := Free(address); err != nil {
			return nil, err
		}
	}
	inner, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("jet: start server: %w", err)
	}
	if o.Log != "" {
		inner.ConfigureLogger()
	}
	inner.Start()
	if !inner.ReadyForConnections(readyWait) {
		inner.Shutdown()
		return nil, errors.New("jet: the server did not become ready")
	}
	return &Server{inner}, nil
}

// URL returns the URL of the server for clients.
func (s *Server) URL() string { return s.inner.ClientURL() }

// Close ends the server and returns when its files are closed.
func (s *Server) Close() {
	s.inner.Shutdown()
	s.inner.WaitForShutdown()
}
