package replay

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/internal/htmlattr"
	"github.com/spinneret-go/spinneret/internal/weburl"
)

// maxHops is how many redirects are followed, as browsers do.
const maxHops = 20

// viewed is the content of the page around an archived page.
type viewed struct {
	URL     string
	Version archive.Version
	AsOf    time.Time // the requested time; zero for the last version

	// Addresses of the previous and next version, of all versions, of the changes since the
	// previous version, of the directory, and of the file itself; "" if there is none.
	Previous, Next, Versions, Changes, Folder, Raw string

	Frame   string // address for the frame; "" if a browser would save the file instead
	Sandbox string // the flags of the frame, the same as in the policy of its content
	Scripts bool

	// Onward is the target of a refresh, and OnwardText the text for it.
	Onward, OnwardText string

	Media string
	Size  string
}

// view shows a page of the archive in a frame.
func (v *Handler) view(w http.ResponseWriter, r *http.Request, tail string) {
	p, ok := v.placeAt(tail)
	if !ok {
		v.fail(w, http.StatusBadRequest, "Invalid address", "After /view/ come a time, such "+
			"as 20261102 or latest, a slash, and an http or https URL.")
		return
	}
	t, err := v.follow(p)
	// Only without a previous redirect: otherwise two pages that redirect to each other could make
	// the browser loop.
	if errors.Is(err, archive.ErrNotFound) && t.hops == 0 && v.onlyOtherScheme(p) {
		v.redirectTo(w, at(viewPath, p.moment, withScheme(p.url)))
		return
	}
	switch {
	case err == errLoop:
		v.fail(w, http.StatusNotFound, "Redirect loop", "As of "+when(p.moment)+", "+
			p.url.String()+" redirects in a loop.",
			linkTo{versionsAddress(p.url.String()), "All versions"})
	case err != nil:
		v.missing(w, t.place, err, t.hops)
	case t.hops > 0:
		t.capture.close()
		v.redirectTo(w, at(viewPath, p.moment, t.place.url.String())+t.fragment)
	default:
		defer t.capture.close()
		v.writePage(w, http.StatusOK, "view", frameOf{Title: p.url.String(), Query: p.url.String(),
			When: field(p.moment), Page: v.describe(p, t.capture)})
	}
}

// field formats a time for a form field.
func field(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05")
}

// redirectTo redirects to an address unchanged: http.Redirect would clean it.
func (v *Handler) redirectTo(w http.ResponseWriter, address string) {
	w.Header().Set("Location", prefixed(v.opts.Base, address))
	w.WriteHeader(http.StatusFound)
}

// errLoop is returned for endless redirects.
var errLoop = errors.New("replay: too many redirects")

// trace is the result of following archived redirects.
type trace struct {
	place    place
	capture  *capture // open, if there was no error
	hops     int
	fragment string
}

// follow opens a page, or the target of its redirects. A browser that followed them would report a
// loop, or a target that is not in the archive, only as a general failure.
func (v *Handler) follow(p place) (t trace, err error) {
	t.place = p
	for ; t.hops <= maxHops; t.hops++ {
		version, err := v.archive.At(t.place.url.String(), p.moment)
		if err != nil {
			return t, err
		}
		if t.capture, err = v.open(version); err != nil {
			return t, err
		}
		location := t.capture.location()
		if location == "" {
			return t, nil
		}
		target, err := weburl.Parse(location, &t.place.url)
		if err != nil || !weburl.IsWeb(&target) {
			return t, nil
		}
		t.capture.close()
		if target.HasFragment {
			t.fragment = "#" + target.Fragment
		}
		if target, err = parseURL(target.String()); err != nil {
			return t, err
		}
		t.place.url = v.stored(target)
	}
	return t, errLoop
}

// onlyOtherScheme reports whether a page was only found under http if https is requested, or the
// reverse.
func (v *Handler) onlyOtherScheme(p place) bool {
	other := withScheme(p.url)
	if other == "" {
		return false
	}
	_, err := v.archive.At(p.url.String(), time.Time{})
	_, failed := v.archive.At(other, p.moment)
	return errors.Is(err, archive.ErrNotFound) && failed == nil
}

// describe collects the content of the bar above a page.
func (v *Handler) describe(p place, c *capture) viewed {
	url := p.url.String()
	dir := folderOf(p.url)
	d := viewed{URL: url, Version: c.version, AsOf: p.moment, Versions: versionsAddress(url),
		Folder: browseAddress(dir.String(), p.moment),
		Media:  c.kind, Size: bytesText(c.version.Content.Length), Scripts: v.opts.Scripts,
		Sandbox: linkFlags}
	if v.opts.Scripts {
		d.Sandbox = "allow-scripts"
	}
	// The previous version is the one that was valid just before this one was found.
	if before, err := v.archive.At(url, c.version.Time.Add(-time.Microsecond)); err == nil {
		d.Previous = at(viewPath, before.Time, url)
		d.Changes = diffAddress(url, before.Time, c.version.Time)
	}
	if !c.version.Until.IsZero() {
		d.Next = at(viewPath, c.version.Until, url)
	}
	shown := p
	if shown.moment.IsZero() {
		// A crawl may add a version before the frame is loaded, and this page describes that of now.
		if shown.moment = v.now(); shown.moment.Before(c.version.Time) {
			shown.moment = c.version.Time
		}
	}
	d.Raw = v.rawAddress(shown)
	if isShown(c.media()) {
		d.Frame = v.replayAddress(v.owner(p.url), shown)
	}
	if ref, encoder, ok := c.onward(v.opts.Scripts); ok {
		links := v.linkerAt(p, url, "", false)
		links.encoder = encoder
		if address, ok := links.rewrite(ref, asLink); ok && address != "" {
			d.Onward, d.OnwardText = address, shortened(ref, maxOnward)
		}
	}
	return d
}

// maxOnward is how much of the target of a refresh is shown, in bytes: the frame is below it.
const maxOnward = 200

// isShown reports whether a browser shows a media type in a sandboxed frame instead of saving it.
// It shows a PDF elsewhere, but not in a sandbox.
func isShown(media string) bool {
	kind, sub, _ := strings.Cut(media, "/")
	switch kind {
	case "audio", "video":
		return true
	case "text":
		return !savedText[sub]
	case "image":
		return shownImages[sub]
	}
	switch sub {
	case "json", "xml", "javascript", "x-javascript", "ecmascript", "xhtml+xml":
		return true
	}
	return strings.HasSuffix(sub, "+json") || strings.HasSuffix(sub, "+xml")
}

// savedText are text types that browsers save, for other programs to open.
var savedText = setOf(`csv tab-separated-values calendar vcard rtf`)

// shownImages are the images that browsers show.
var shownImages = setOf(`png apng jpeg jpg gif webp avif bmp svg+xml x-icon vnd.microsoft.icon`)

// refreshWithin is how much of a page is searched for a meta refresh, in bytes.
const refreshWithin = 64 << 10

// onward returns the target of a page's refresh, and the encoder of its query. In a sandbox the refresh
// does not work, so a link replaces it.
func (c *capture) onward(scripts bool) (ref string, encoder weburl.Encoder, ok bool) {
	if _, ref, ok := htmlattr.CutRefresh(c.head.Get("Refresh")); ok && ref != "" {
		return ref, nil, true
	}
	if !c.isHTML() {
		return "", nil, false
	}
	start, _ := c.read(refreshWithin)
	encoder = readAs(start, c.kind).Encoder()
	start, _ = toUTF8(start, c.kind, 3*refreshWithin)
	start = asHTML(start, c.kind)
	if !bytes.Contains(bytes.ToLower(start), []byte("refresh")) {
		return "", nil, false
	}
	for name, attrs := range startTags(start, scripts) {
		if name != "meta" || !strings.EqualFold(value(attrs, "http-equiv"), "refresh") {
			continue
		}
		if _, ref, ok := htmlattr.CutRefresh(value(attrs, "content")); ok && ref != "" {
			return ref, encoder, true
		}
	}
	return "", nil, false
}
