package webtest

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
)

// openStatic opens the directory of static hosts and lists them. All files are opened below
// this root, which neither ".." nor a symbolic link can leave.
func (w *Web) openStatic(dir string) (names []string, err error) {
	if dir == "" {
		return nil, nil
	}
	if w.static, err = os.OpenRoot(dir); err != nil {
		return nil, fmt.Errorf("webtest: open static hosts: %w", err)
	}
	entries, err := fs.ReadDir(w.static.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("webtest: list static hosts: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") { // .git is no host
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (w *Web) closeStatic() error {
	if w.static == nil {
		return nil
	}
	return w.static.Close()
}

// indexNames are tried in turn for a directory. The last is how Apache's manual names its pages for
// content negotiation.
var indexNames = []string{"index.html", "index.htm", "index.html.en"}

// static answers with a file of the host's directory. Folders with the name of an index are skipped, as
// they have no page.
func (x *exchange) static() int {
	name := path.Join(x.web.hosts[x.host].Name, path.Clean("/"+x.r.URL.Path))
	slash := strings.HasSuffix(x.r.URL.Path, "/")
	files := []string{""}
	if slash {
		files = indexNames
	}
	for _, file := range files {
		info, err := x.web.static.Stat(path.Join(name, file)) // opening a pipe would wait for its writer
		switch {
		case err == nil && info.IsDir() && !slash:
			return x.redirect(http.StatusMovedPermanently, slashForm(x.r))
		case err != nil || !info.Mode().IsRegular():
			continue
		}
		f, err := x.web.static.Open(path.Join(name, file))
		if err != nil {
			continue
		}
		defer f.Close()
		return x.file(f, info)
	}
	return x.fail(http.StatusNotFound)
}

// slashForm is the URL of a directory in its canonical form.
func slashForm(r *http.Request) string {
	u := *r.URL
	u.Scheme, u.Host = "", ""
	u.Path = path.Clean("/"+u.Path) + "/"
	u.RawPath = ""
	return u.String()
}

// file leaves conditions and ranges to net/http.
func (x *exchange) file(f io.ReadSeeker, info fs.FileInfo) int {
	if t := contentType(info.Name()); t != "" {
		x.w.Header()["Content-Type"] = []string{t}
	}
	noted := &noter{ResponseWriter: x.w, x: x}
	http.ServeContent(noted, x.r, info.Name(), info.ModTime(), f)
	return noted.status
}

// contentType returns the type of a file. HTML is sent without a charset, so that the one in the
// page counts; the common types do not depend on the system's table.
func contentType(name string) string {
	lower := strings.ToLower(name)
	ext := path.Ext(lower)
	if strings.Contains(lower, ".html.") {
		ext = ".html"
	}
	switch ext {
	case ".html", ".htm":
		return "text/html"
	case ".xhtml":
		return "application/xhtml+xml"
	case ".css":
		return "text/css"
	case ".js", ".mjs":
		return "text/javascript"
	case ".txt":
		return "text/plain; charset=utf-8"
	case ".xml":
		return "application/xml"
	}
	return mime.TypeByExtension(ext)
}

// noter notes the status of a response that net/http writes.
type noter struct {
	http.ResponseWriter
	x        *exchange
	status   int
	hijacked bool // whoever has the connection answers as it likes
}

func (n *noter) WriteHeader(status int) {
	switch {
	case n.status != 0:
	case status < 200: // a hint before the answer
		n.ResponseWriter.WriteHeader(status)
	default:
		n.status = n.x.begin(status)
	}
}

// Write sends the header first, as that of a http.ResponseWriter does.
func (n *noter) Write(p []byte) (int, error) {
	n.WriteHeader(http.StatusOK)
	return n.ResponseWriter.Write(p)
}

// ReadFrom preserves sendfile, which embedding alone would hide.
func (n *noter) ReadFrom(r io.Reader) (int64, error) {
	n.WriteHeader(http.StatusOK)
	return io.Copy(n.ResponseWriter, r)
}

// Flush implements http.Flusher. The header that it sends is noted, too.
func (n *noter) Flush() {
	n.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(n.ResponseWriter).Flush() // a client that has left does not matter
}

// Hijack implements http.Hijacker.
func (n *noter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(n.ResponseWriter).Hijack()
	n.hijacked = n.hijacked || err == nil
	return conn, rw, err
}

// Unwrap is for http.ResponseController.
func (n *noter) Unwrap() http.ResponseWriter { return n.ResponseWriter }
