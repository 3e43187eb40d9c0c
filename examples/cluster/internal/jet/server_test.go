package jet

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ServerOptions are the options of a [Server].
type ServerOptions struct {
	Dir  string // where streams are stored
	Port int    // on the loopback interface; 0 means a free one

	Name    string   // among several servers
	Cluster string   // where it listens for the others; "" means that it is alone
	Routes  []string // where all of them do
}

// A Server is a broker inside this process.
type Server struct{ inner *server.Server }

// StartServer starts a broker and returns when it accepts connections.
func StartServer(o ServerOptions) (*Server, error) {
	options := &server.Options{
		Host: "127.0.0.1", Port: o.Port, ServerName: o.Name, StoreDir: o.Dir, JetStream: true,
		NoSigs: true, NoLog: true,
	}
	if o.Port == 0 {
		options.Port = server.RANDOM_PORT
	}
	if o.Cluster != "" {
		host, port, err := net.SplitHostPort(o.Cluster)
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			return nil, err
		}
		options.Cluster = server.ClusterOpts{Name: "spinneret", Host: host, Port: n}
		for _, route := range o.Routes {
			options.Routes = append(options.Routes, &url.URL{Scheme: "nats", Host: route})
		}
	}
	inner, err := server.NewServer(options)
	if err != nil {
		return nil, err
	}
	inner.Start()
	if !inner.ReadyForConnections(20 * time.Second) {
		inner.Shutdown()
		return nil, errors.New("the server did not become ready")
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
