package cockpit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/replay"
)

// serving are the flags of serve.
type serving struct {
	listen, names string
	scripts       bool
}

func (s *serving) flags(fs *flag.FlagSet) {
	fs.StringVar(&s.listen, "listen", "127.0.0.1:8077", "`address` to serve at")
	fs.StringVar(&s.names, "names", "", "`hosts` by which browsers may address the server, separated by commas; "+
		"localhost, loopback addresses and that of -listen are always allowed")
	fs.BoolVar(&s.scripts, "scripts", false, "let archived pages run their scripts, in a sandbox; "+
		"they can read the archived pages of their own site, and leak them: no browser blocks WebRTC and preconnect")
}

// run serves the archive to browsers until ctx ends.
func (s *serving) run(ctx context.Context, in call) error {
	return withArchive(in.dir, func(a *archive.Archive) error {
		l, err := listen(s.listen)
		if err != nil {
			return err
		}
		server := newServer(s.handler(a))
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		fmt.Fprintf(in.out, "the archive of %s: http://%s/\n", in.dir, l.Addr())
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
}

func (s *serving) handler(a *archive.Archive) http.Handler {
	return replay.New(a, replay.Options{Scripts: s.scripts, Hosts: append(ownNames(s.listen), hostNames(s.names)...)})
}
