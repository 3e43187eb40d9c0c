package replay

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
)

const (
	// maxRewrite is the maximum length in bytes of a page or a style sheet that is rewritten, as
	// archived and in UTF-8, where a NUL is U+FFFD. A longer one is served unchanged.
	maxRewrite = 8 << 20

	// maxMemory bounds the bytes that all requests together use to rewrite and compare pages, and
	// maxSmall those for small pages besides. The others wait.
	maxMemory, maxSmall = 80 << 20, 16 << 20

	// maxBody bounds a body that was archived with a content coding, in decoded bytes. The rest is
	// not served.
	maxBody = 256 << 20

	// maxScan is how many versions are read to count the contents of the archive, which takes a few
	// seconds.
	maxScan = 1_000_000
)

// Options configures a [Handler]. The zero Options is the recommendation.
type Options struct {
	// Scripts lets archived pages run their scripts, in an opaque origin. A script can read the
	// pages of its own site as of the time shown, and can leak them: browsers cannot prevent a
	// WebRTC or preconnect connection. Of other sites it can read what their servers let it read,
	// by Access-Control-Allow-Origin. Scripts run only if the browser says that a page is for a
	// frame, as browsers do for https and for loopback addresses. false means that none run.
	Scripts bool

	// Hosts are host names that requests may use, such as the computer's name in its network. nil
	// means only localhost and loopback addresses.
	Hosts []string

	// Base is the path prefix of the handler's addresses, such as "/archive". It consists of
	// letters, digits, slashes and "-._~". "" means that the handler serves all paths.
	Base string

	// Title is the name of the archive on the pages. "" means "Archive".
	Title string
}

// Handler is an http.Handler. Its methods are safe for concurrent use.
type Handler struct {
	archive *archive.Archive
	opts    Options
	key     []byte // of the tokens in replay addresses
	hosts   map[string]bool
	static  http.Handler
	pages   *template.Template
	summary summarizer
	memory  *budget
	small   *budget // of pages up to smallPage

	listings *budget // a unit for each

	maxRewrite, maxBody int64
	maxScan             int
	now                 func() time.Time
}

//go:embed static
var staticFiles embed.FS

// New returns a handler that shows an archive. Captures may be appended at any time. Its addresses
// contain double slashes, which an http.ServeMux would remove: check for [Options.Base] before a
// mux, as in the Example of Options.
func New(a *archive.Archive, opts Options) *Handler {
	opts.Title = cmp.Or(opts.Title, "Archive")
	if opts.Base = strings.Trim(opts.Base, "/"); opts.Base != "" {
		opts.Base = "/" + opts.Base
	}
	v := &Handler{archive: a, opts: opts, key: make([]byte, sha256.Size), hosts: map[string]bool{},
		static: http.FileServerFS(staticFiles), pages: template.Must(pages.Clone()),
		memory: newBudget(maxMemory), small: newBudget(maxSmall),
		listings:   newBudget(maxListings * unit),
		maxRewrite: maxRewrite, maxBody: maxBody, maxScan: maxScan,
		now: time.Now}
	_, _ = rand.Read(v.key) // documented never to fail
	v.pages.Funcs(addressesBelow(opts.Base, opts.Title))
	for _, host := range opts.Hosts {
		v.hosts[strings.ToLower(host)] = true
	}
	return v
}

// ServeHTTP implements [http.Handler].
func (v *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r, ok := v.strip(r)
	if !v.admit(w, r) {
		return
	}
	if !ok {
		v.secure(w, r)
		http.NotFound(w, r)
		return
	}
	// Addresses of archived pages are used as sent. A parsed and cleaned path would differ.
	raw := r.RequestURI
	if tail, ok := strings.CutPrefix(raw, replayPath); ok {
		v.replay(w, r, tail)
		return
	}
	v.secure(w, r)
	if tail, ok := strings.CutPrefix(raw, viewPath); ok {
		v.view(w, r, tail)
		return
	}
	if tail, ok := strings.CutPrefix(raw, rawPath); ok {
		v.download(w, r, tail)
		return
	}
	switch r.URL.Path {
	case "/":
		v.start(w, r)
	case "/go":
		v.search(w, r)
	case "/browse":
		v.browse(w, r)
	case "/versions":
		v.timeline(w, r)
	case "/diff":
		v.compare(w, r)
	case "/favicon.ico":
		v.redirectTo(w, "/static/icon.svg")
	default:
		if isAsset(r.URL.Path) {
			w.Header().Set("Cache-Control", "private, max-age=300")
			v.static.ServeHTTP(w, r)
			return
		}
		v.fail(w, http.StatusNotFound, "Page not found",
			"This archive has no page with this address.")
	}
}

// strip returns a request without Base in its addresses, or false if its path is not below Base.
func (v *Handler) strip(r *http.Request) (*http.Request, bool) {
	rest, ok := strings.CutPrefix(r.RequestURI, v.opts.Base)
	if ok && (rest == "" || rest[0] == '?') {
		rest = "/" + rest
	}
	if !ok || rest[0] != '/' && v.opts.Base != "" {
		return r, false
	}
	path := *r.URL
	path.Path, path.RawPath = cmp.Or(strings.TrimPrefix(path.Path, v.opts.Base), "/"), ""
	stripped := *r
	stripped.URL, stripped.RequestURI = &path, rest
	return &stripped, true
}

// isAsset reports whether a path is that of a static file. The list of files is not served.
func isAsset(path string) bool {
	name, ok := strings.CutPrefix(path, "/static/")
	return ok && name != "" && !strings.Contains(name, "/")
}
