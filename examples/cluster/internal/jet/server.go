package jet

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ServerOptions says what a [Server] is like.
type ServerOptions struct {
	Dir  string // where streams are kept; "" means nowhere, which is refused
	Port int    // on the loopback interface; 0 means a free one
	Log  string // a file for what the server has to say; "" means that nobody hears it
	Bind string // the address to listen on; "" means 127.0.0.1

	MaxStore int64 // bytes that streams may reserve; 0 means three quarters of the free disk

	Name    string   // among several servers; "" means that the server makes one up
	Cluster string   // where it listens for the others; "" means that it is alone
	Routes  []string // where all of them do, itself included; nil means that it waits for them
}

// readyWait is how long a server may take to begin.
const readyWait = 20 * time.Second

// A Server is a broker inside this process. Its methods are safe for concurrent use.
type Server struct {
	inner *server.Server
}

// StartServer starts a broker and returns when it takes connections.
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
		return nil, errors.New("jet: the server did not get ready")
	}
	return &Server{inner}, nil
}

// URL returns where clients find the server.
func (s *Server) URL() string { return s.inner.ClientURL() }

// Close ends the server and returns when its files are closed.
func (s *Server) Close() {
	s.inner.Shutdown()
	s.inner.WaitForShutdown()
}
