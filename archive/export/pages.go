package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/allen"
)

// writePages lists the pages that readers may start with: HTML documents, in file order, so that
// titles are read sequentially.
func writePages(w io.Writer, a *archive.Archive, place placing) error {
	out := bufio.NewWriter(w)
	list := json.NewEncoder(out)
	list.SetEscapeHTML(false)
	err := list.Encode(map[string]string{"format": "json-pages-1.0", "id": "pages",
		"title": "Pages"})
	if err != nil {
		return err
	}
	pages, err := a.Snapshot(archive.Query{Relations: allen.Found, Keep: isPage})
	if err != nil {
		return err
	}
	defer pages.Close()
	n := 0
	for doc, failed := range pages.Documents() {
		if failed != nil && doc.URL == "" {
			return failed
		}
		if _, in := place(doc.Location); !in || failed != nil {
			continue
		}
		n++
		if err := list.Encode(page{ID: fmt.Sprint(n), URL: doc.URL, Title: title(doc),
			TS: doc.Time.Format(time.RFC3339)}); err != nil {
			return err
		}
	}
	return errors.Join(err, out.Flush())
}

func isPage(v *archive.Version) bool {
	return v.Kind == archive.Changed && v.Status == 200 && strings.HasSuffix(v.Media, "html")
}

// Limits in bytes: how much of a page is searched for its title, and how long a title may be.
const (
	titleWithin = 64 << 10
	maxTitle    = 1000
)

// title returns the title of a page, or "" if there is none or the page cannot be read. A list of
// pages is not the place to report damage.
func title(doc *archive.Document) string {
	rec, err := doc.Record()
	if err != nil {
		return ""
	}
	defer rec.Close()
	message, err := rec.HTTP()
	if err != nil {
		return ""
	}
	start, _ := io.ReadAll(io.LimitReader(message.Decoded(0), titleWithin))
	text, err := charset.NewReader(bytes.NewReader(start), message.Get("Content-Type"))
	if err != nil {
		return ""
	}
	z := html.NewTokenizer(text)
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		if name, _ := z.TagName(); kind == html.StartTagToken && string(name) == "title" {
			if z.Next() != html.TextToken {
				return ""
			}
			title := strings.Join(strings.Fields(string(z.Text())), " ")
			return strings.ToValidUTF8(title[:min(len(title), maxTitle)], "")
		}
	}
	return ""
}
