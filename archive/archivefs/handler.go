package archivefs

import (
	"io/fs"
	"net/http"
)

// policy gives each page an opaque origin, so that no page is of the same origin as another one or
// as the server. No script runs, and everything that a page loads comes from the server.
const policy = "default-src 'none'; img-src 'self' data:; media-src 'self' data:; font-src 'self'; " +
	"style-src 'self' 'unsafe-inline'; frame-src 'self'; form-action 'none'; base-uri 'none'; sandbox"

// Handler serves files of an archive as [http.FileServerFS] does, with headers that contain hostile
// pages: their scripts do not run, and no host's pages reach those of another one.
// http.FileServerFS alone would run the scripts of all hosts in one origin, in which each could
// read all others and everything else on the server.
//
// Links keep their addresses, so those with a host lead to the live web; package replay rewrites
// them. Serve it on loopback only: it does not check where a request comes from.
func Handler(files fs.FS) http.Handler {
	server := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin") // to an opaque origin, all are
		server.ServeHTTP(w, r)
	})
}
