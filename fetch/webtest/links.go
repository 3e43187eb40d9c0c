package webtest

import "bytes"

// Tree links join every page of a host to its "/", and every host to the first host's "/". Node
// n has the children n*fan+1 … n*fan+fan.
const (
	pageFan = 5
	hostFan = 4
)

// The mean number of links at random, to pages of the same host and to any page.
const (
	localLinks = 4
	crossLinks = 2
)

// link is an edge of the web: the page it leads to. Its spelling is drawn later, and does not
// change the target.
type link struct{ host, page int }

// appendLinks appends the links of one page: the tree first, then those at random.
func (w *Web) appendLinks(l []link, host, page int) []link {
	for c := page*pageFan + 1; c <= page*pageFan+pageFan && c < w.hosts[host].pages; c++ {
		l = append(l, link{host, c})
	}
	if page == 0 {
		for c := host*hostFan + 1; c <= host*hostFan+hostFan && c < w.generated; c++ {
			l = append(l, link{c, 0})
		}
	}
	if w.treeOnly {
		return l
	}
	r := w.stream(saltLinks, host, page)
	for range r.below(2*localLinks + 1) {
		l = append(l, link{host, r.below(w.hosts[host].pages)})
	}
	for range r.below(2*crossLinks + 1) {
		other := r.below(w.generated)
		// Half of the links between real hosts lead to front pages.
		l = append(l, link{other, r.below(w.hosts[other].pages) * r.below(2)})
	}
	return l
}

// appendAnchor writes one link in one of the forms that authors use. All of them resolve to exactly
// the same URL, except for a fragment.
func (p *page) appendAnchor(b []byte, l link) []byte {
	r := &p.text
	p.target = p.web.appendPath(p.target[:0], l.host, l.page)
	target, quote := p.target, byte('"')
	if l.host == p.host && r.unit() < p.web.hosts[p.host].traits.Redirects {
		target = append(p.other[:0], goDir...)
		target = appendInt(target, l.page)
		p.other = target
	}
	switch r.below(8) {
	case 0:
		b = append(b, "<A HREF="...)
	case 1:
		b, quote = append(b, "<a class=\"x\" href = "...), '\''
	case 2:
		b, quote = append(b, "<a rel=next\n href="...), 0
	default:
		b = append(b, "<a href="...)
	}
	if quote != 0 {
		b = append(b, quote)
	}
	b = p.appendReference(b, l.host, target)
	if r.below(8) == 0 {
		b = append(append(b, '#'), p.web.prose.word(r)...)
	}
	if quote != 0 {
		b = append(b, quote)
	}
	b = append(append(b, '>'), p.web.prose.word(r)...)
	return append(b, "</a>\n"...)
}

// appendReference writes target as an absolute, scheme-relative, rooted or relative reference,
// with its ampersands, and now and then a slash, as entities.
func (p *page) appendReference(b []byte, host int, target []byte) []byte {
	r := &p.text
	mark := len(b)
	form := r.below(8)
	switch {
	case form == 0:
		b = append(append(b, "//"...), p.web.hosts[host].Name...)
		b = append(b, target...)
	case host != p.host || form == 1:
		b = append(append(b, p.web.scheme...), p.web.hosts[host].Name...)
		b = append(b, target...)
	case form < 5:
		b = append(b, target...)
	case p.base:
		b = appendRelative(b, []byte("/"), target)
	default:
		b = appendRelative(b, p.path, target)
	}
	if bytes.IndexByte(target, '&') < 0 && r.below(16) != 0 {
		return b
	}
	p.entities = append(p.entities[:0], b[mark:]...)
	b = b[:mark]
	for i, c := range p.entities {
		switch {
		case c == '&':
			b = append(b, "&amp;"...)
		case c == '/' && i == len(p.entities)-len(target):
			b = append(b, "&#x2F;"...)
		default:
			b = append(b, c)
		}
	}
	return b
}
