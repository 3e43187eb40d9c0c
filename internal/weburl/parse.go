package weburl

import "strings"

// Parse parses raw, which may be relative if base is not nil. It only reads base. All errors are
// of type [ParseError].
//
// The standard's parser is a state machine over code points. This one slices strings, and copies
// only what must change: the first "#" starts the fragment in every state, the first "?" before it
// starts the query, and the rest is the head. The comments below name the states that a function
// implements.
func Parse(raw string, base *URL) (URL, error) { return ParseEncoded(raw, base, nil) }

// ParseEncoded parses a link on a page whose encoding is not UTF-8: non-ASCII characters in the
// query of a special URL are percent-encoded in the encoding of the page. raw is still UTF-8. A nil
// encoder means UTF-8.
func ParseEncoded(raw string, base *URL, encoder Encoder) (URL, error) {
	if u, ok := cutNormal(raw); ok {
		return u, nil
	}
	p := parser{base: base, encoder: encoder}
	return p.parse(raw)
}

func (p *parser) parse(raw string) (URL, error) {
	head := p.cutTail(trim(raw))
	if err := p.parseHead(head); err != nil {
		return URL{}, err
	}
	return p.url, nil
}

// parser is the state of one call of Parse.
type parser struct {
	url     URL
	base    *URL
	encoder Encoder
	last    *lastHost // nil for none
	special bool      // the scheme of url is special
	query   string    // as written
}

// cutTail cuts off the fragment and the raw query. The encoding of the query depends on the scheme,
// which is not known yet.
func (p *parser) cutTail(in string) (head string) {
	head, fragment, found := strings.Cut(in, "#")
	p.url.HasFragment = found
	p.url.Fragment = encode(fragment, inFragment)
	head, p.query, p.url.HasQuery = strings.Cut(head, "?")
	return head
}

// parseHead implements the scheme state: the scheme decides how the rest is read.
func (p *parser) parseHead(head string) error {
	scheme, rest, found := cutScheme(head)
	if !found {
		return p.parseSchemeless(head)
	}
	p.setScheme(scheme)
	switch {
	case scheme == "file":
		return p.parseFile(rest)
	case p.special && p.base != nil && p.base.Scheme == scheme:
		// "http:page" is relative to another http URL, as in the early years of the web.
		return p.parseRelative(rest)
	case p.special:
		// Any number of slashes is accepted, including none: there is always a host.
		return p.parseAuthority(p.skipSlashes(rest))
	case strings.HasPrefix(rest, "//"):
		return p.parseAuthority(rest[len("//"):])
	case strings.HasPrefix(rest, "/"):
		p.setPath("", rest[len("/"):])
	default:
		p.setOpaque(rest)
	}
	return nil
}

// parseSchemeless implements the no scheme state.
func (p *parser) parseSchemeless(head string) error {
	switch {
	case p.base == nil:
		return ParseError{ErrNoBase, "no scheme"}
	case p.base.Opaque:
		// Only a fragment can be resolved against mailto:a@b.test.
		if head != "" || p.url.HasQuery || !p.url.HasFragment {
			return ParseError{ErrNoBase, "the base has an opaque path"}
		}
		p.setScheme(p.base.Scheme)
		p.url.Opaque = true
		p.inheritPath()
		return nil
	}
	p.setScheme(p.base.Scheme)
	if p.base.Scheme == "file" {
		return p.parseFile(head)
	}
	return p.parseRelative(head)
}

// setScheme sets the scheme and encodes the query. In special URLs an apostrophe is encoded,
// because old pages put such URLs between apostrophes in scripts.
func (p *parser) setScheme(scheme string) {
	p.url.Scheme = scheme
	p.special = isSpecial(scheme)
	set := inQuery
	if p.special {
		set = inSpecialQuery
		if p.encoder != nil && scheme != "ws" && scheme != "wss" {
			p.url.Query = encodeWith(p.query, set, p.encoder)
			return
		}
	}
	p.url.Query = encode(p.query, set)
}

// parseRelative parses a head that shares its scheme with the base. It implements the relative,
// relative slash and special relative or authority states. The more slashes the head starts with,
// the less it inherits from the base: without a slash, the path; with one, the host; with two, only
// the scheme.
func (p *parser) parseRelative(head string) error {
	if p.slashAt(head, 0) && p.slashAt(head, 1) {
		if p.special {
			head = p.skipSlashes(head)
		} else {
			head = head[len("//"):]
		}
		return p.parseAuthority(head)
	}
	p.inheritAuthority()
	switch {
	case head == "":
		p.inheritPath()
	case p.slashAt(head, 0):
		p.setPath("", head[len("/"):])
	default:
		// The base's last segment is the page with the link.
		p.setPath(parent(p.base.Path, false), head)
	}
	return nil
}

// parseFile parses the head of a file URL. Such URLs have special rules, which keep a Windows drive
// letter at the start of the path: dots do not remove it, nor does resolving a path that starts
// with a slash. It implements the file and file slash states.
//
// A file URL always has a host, which may be empty.
func (p *parser) parseFile(head string) error {
	p.url.HasHost = true
	fileBase := p.base != nil && p.base.Scheme == "file"
	switch {
	case p.slashAt(head, 0) && p.slashAt(head, 1):
		return p.parseFileHost(head[len("//"):])
	case p.slashAt(head, 0):
		head = head[len("/"):]
		prefix := ""
		if fileBase {
			p.url.Host = p.base.Host
			if !startsWithDrive(head) {
				prefix = drive(p.base.Path)
			}
		}
		p.setPath(prefix, head)
	case !fileBase:
		p.setPath("", head)
	case head == "":
		p.url.Host = p.base.Host
		p.inheritPath()
	default:
		p.url.Host = p.base.Host
		prefix := ""
		if !startsWithDrive(head) {
			prefix = parent(p.base.Path, true)
		}
		p.setPath(prefix, head)
	}
	return nil
}

// parseFileHost implements the file host state: no credentials, no port.
func (p *parser) parseFileHost(rest string) error {
	host, path := p.cutAtSlash(rest)
	if isDrive(host) {
		// In file://C:/ a slash is missing: C: is the drive, not the host.
		p.setPath("", rest)
		return nil
	}
	if host != "" {
		name, err := parseHost(host, true)
		if err != nil {
			return err
		}
		if name != "localhost" {
			p.url.Host = name
		}
	}
	p.setPathAfterHost(path)
	return nil
}

// parseAuthority parses the text after the two slashes: credentials, host, port and path. It
// implements the authority, host and port states.
//
// The credentials end at the last "@", so that "http://good.test@evil.test" goes to evil.test;
// earlier ones are encoded as part of them.
func (p *parser) parseAuthority(rest string) error {
	authority, path := p.cutAtSlash(rest)
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		name, password, _ := strings.Cut(authority[:at], ":")
		p.url.Username = encode(name, inUserinfo)
		p.url.Password = encode(password, inUserinfo)
		authority = authority[at+1:]
		if authority == "" {
			return ParseError{ErrHost, "credentials without a host"}
		}
	}
	host, port, hasPort := cutPort(authority)
	// Other schemes may leave the host empty, as in x:///path, but a port needs a host.
	if host == "" && (p.special || hasPort) {
		return ParseError{ErrHost, "empty"}
	}
	name, err := p.parseHost(host)
	if err != nil {
		return err
	}
	p.url.Host, p.url.HasHost = name, true
	if p.url.Port, err = parsePort(port, p.url.Scheme); err != nil {
		return err
	}
	p.setPathAfterHost(path)
	return nil
}

func (p *parser) parseHost(host string) (string, error) {
	if p.special {
		return p.last.parse(host)
	}
	return parseHost(host, false)
}

// inheritAuthority copies everything between the scheme and the path from the base.
func (p *parser) inheritAuthority() {
	p.url.Username, p.url.Password = p.base.Username, p.base.Password
	p.url.Host, p.url.Port, p.url.HasHost = p.base.Host, p.base.Port, p.base.HasHost
}

// inheritPath copies the base's path, and its query unless there is a new one.
func (p *parser) inheritPath() {
	p.url.Path = p.base.Path
	if !p.url.HasQuery {
		p.url.Query, p.url.HasQuery = p.base.Query, p.base.HasQuery
	}
}
