package weburl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// machine is a literal transcription of the standard's basic URL parser: one method per state, one
// code point at a time, and the path is a list. It is slow and simple, and the reference for Parse,
// which slices the input instead. Both parse hosts with parseHost.
type machine struct {
	input   []rune
	pointer int
	state   func(*machine, rune)
	buffer  []rune
	failed  bool

	atSignSeen, insideBrackets, passwordSeen bool

	url  record
	base *record
}

// record is a URL as the standard represents it.
type record struct {
	URL           // without Path
	path []string // for an opaque path, one string
}

const eof rune = -1

// parseByStateMachine is like Parse, but uses the state machine.
func parseByStateMachine(raw string, base *record) (record, bool) {
	input := strings.Trim(strings.ToValidUTF8(raw, ""), controlsAndSpace())
	input = dropTabsAndNewlines.Replace(input)
	m := machine{input: []rune(input), state: (*machine).schemeStart, base: base}
	for ; ; m.pointer++ {
		m.state(&m, m.at(m.pointer))
		if m.failed {
			return record{}, false
		}
		if m.pointer >= len(m.input) {
			return m.url, true
		}
	}
}

func controlsAndSpace() string {
	var set []rune
	for c := range ' ' + 1 {
		set = append(set, c)
	}
	return string(set)
}

// plain converts the record to the URL that Parse should return.
func (r *record) plain() URL {
	u := r.URL
	if u.Opaque {
		u.Path = r.path[0]
	} else {
		u.Path = ""
		for _, segment := range r.path {
			u.Path += "/" + segment
		}
	}
	return u
}

func (m *machine) at(i int) rune {
	if i < len(m.input) {
		return m.input[i]
	}
	return eof
}

// remaining reports whether the code points after the pointer begin with prefix.
func (m *machine) remaining(prefix string) bool {
	return strings.HasPrefix(string(m.input[min(m.pointer+1, len(m.input)):]), prefix)
}

func (m *machine) specialSlash(c rune) bool { return m.url.Special() && c == '\\' }

func (m *machine) endsAuthority(c rune) bool {
	return c == eof || c == '/' || c == '?' || c == '#' || m.specialSlash(c)
}

func (m *machine) again(state func(*machine, rune)) {
	m.state = state
	m.pointer--
}

func (m *machine) schemeStart(c rune) {
	if isLetter(c) {
		m.buffer = append(m.buffer, c|0x20)
		m.state = (*machine).scheme
		return
	}
	m.again((*machine).noScheme)
}

func (m *machine) scheme(c rune) {
	switch {
	case isLetter(c) || c != eof && strings.ContainsRune("0123456789+-.", c):
		m.buffer = append(m.buffer, []rune(strings.ToLower(string(c)))...)
	case c == ':':
		m.url.Scheme = string(m.buffer)
		m.buffer = nil
		m.schemeEnd()
	default:
		m.buffer = nil
		m.pointer = -1
		m.state = (*machine).noScheme
	}
}

func isLetter(c rune) bool { return c >= 0 && c < 0x80 && isAlpha(byte(c)) }

func (m *machine) schemeEnd() {
	switch {
	case m.url.Scheme == "file":
		m.state = (*machine).file
	case m.url.Special() && m.base != nil && m.base.Scheme == m.url.Scheme:
		m.state = (*machine).specialRelativeOrAuthority
	case m.url.Special():
		m.state = (*machine).specialAuthoritySlashes
	case m.remaining("/"):
		m.state = (*machine).pathOrAuthority
		m.pointer++
	default:
		m.url.Opaque = true
		m.url.path = []string{""}
		m.state = (*machine).opaquePath
	}
}

func (m *machine) noScheme(c rune) {
	switch {
	case m.base == nil || m.base.Opaque && c != '#':
		m.failed = true
	case m.base.Opaque:
		m.url.Scheme, m.url.Opaque = m.base.Scheme, true
		m.copyPath()
		m.copyQuery()
		m.url.HasFragment = true
		m.state = (*machine).fragment
	case m.base.Scheme == "file":
		m.again((*machine).file)
	default:
		m.again((*machine).relative)
	}
}

func (m *machine) specialRelativeOrAuthority(c rune) {
	if c == '/' && m.remaining("/") {
		m.state = (*machine).specialAuthorityIgnoreSlashes
		m.pointer++
		return
	}
	m.again((*machine).relative)
}

func (m *machine) pathOrAuthority(c rune) {
	if c == '/' {
		m.state = (*machine).authority
		return
	}
	m.again((*machine).path)
}

func (m *machine) relative(c rune) {
	m.url.Scheme = m.base.Scheme
	if c == '/' || m.specialSlash(c) {
		m.state = (*machine).relativeSlash
		return
	}
	m.copyAuthority()
	m.copyPath()
	m.copyQuery()
	m.afterBase(c, func() { m.shorten() })
}

// afterBase is the common end of the relative state and the file state.
func (m *machine) afterBase(c rune, shorten func()) {
	switch c {
	case '?':
		m.url.HasQuery, m.url.Query = true, ""
		m.state = (*machine).query
	case '#':
		m.url.HasFragment = true
		m.state = (*machine).fragment
	case eof:
	default:
		m.url.HasQuery, m.url.Query = false, ""
		shorten()
		m.again((*machine).path)
	}
}

func (m *machine) relativeSlash(c rune) {
	switch {
	case m.url.Special() && (c == '/' || c == '\\'):
		m.state = (*machine).specialAuthorityIgnoreSlashes
	case c == '/':
		m.state = (*machine).authority
	default:
		m.copyAuthority()
		m.again((*machine).path)
	}
}

func (m *machine) specialAuthoritySlashes(c rune) {
	m.state = (*machine).specialAuthorityIgnoreSlashes
	if c == '/' && m.remaining("/") {
		m.pointer++
		return
	}
	m.pointer--
}

func (m *machine) specialAuthorityIgnoreSlashes(c rune) {
	if c != '/' && c != '\\' {
		m.again((*machine).authority)
	}
}

func (m *machine) authority(c rune) {
	switch {
	case c == '@':
		if m.atSignSeen {
			m.buffer = append([]rune("%40"), m.buffer...)
		}
		m.atSignSeen = true
		for _, b := range m.buffer {
			if b == ':' && !m.passwordSeen {
				m.passwordSeen = true
			} else if m.passwordSeen {
				m.url.Password += escape(b, userinfoSet)
			} else {
				m.url.Username += escape(b, userinfoSet)
			}
		}
		m.buffer = nil
	case m.endsAuthority(c):
		if m.atSignSeen && len(m.buffer) == 0 {
			m.failed = true
			return
		}
		m.pointer -= len(m.buffer) + 1
		m.buffer = nil
		m.state = (*machine).host
	default:
		m.buffer = append(m.buffer, c)
	}
}

func (m *machine) host(c rune) {
	switch {
	case c == ':' && !m.insideBrackets:
		m.setHost(len(m.buffer) == 0)
		m.state = (*machine).port
	case m.endsAuthority(c):
		m.pointer--
		m.setHost(m.url.Special() && len(m.buffer) == 0)
		m.state = (*machine).pathStart
	default:
		if c == '[' {
			m.insideBrackets = true
		}
		if c == ']' {
			m.insideBrackets = false
		}
		m.buffer = append(m.buffer, c)
	}
}

func (m *machine) setHost(failed bool) {
	name, err := parseHost(string(m.buffer), m.url.Special())
	m.failed = failed || err != nil
	m.url.Host, m.url.HasHost = name, true
	m.buffer = nil
}

func (m *machine) port(c rune) {
	switch {
	case c >= '0' && c <= '9':
		m.buffer = append(m.buffer, c)
	case m.endsAuthority(c):
		if len(m.buffer) > 0 {
			number, err := strconv.ParseUint(string(m.buffer), 10, 16)
			m.failed = err != nil
			m.url.Port = strconv.FormatUint(number, 10)
			if m.url.Port == defaultPort(m.url.Scheme) {
				m.url.Port = ""
			}
			m.buffer = nil
		}
		m.again((*machine).pathStart)
	default:
		m.failed = true
	}
}

func (m *machine) file(c rune) {
	m.url.Scheme = "file"
	m.url.HasHost, m.url.Host = true, ""
	switch {
	case c == '/' || c == '\\':
		m.state = (*machine).fileSlash
	case m.base != nil && m.base.Scheme == "file":
		m.url.Host = m.base.Host
		m.copyPath()
		m.copyQuery()
		m.afterBase(c, func() {
			if m.startsWithDrive() {
				m.url.path = nil
			} else {
				m.shorten()
			}
		})
	default:
		m.again((*machine).path)
	}
}

// startsWithDrive reports whether the code points from the pointer on start with a Windows drive
// letter.
func (m *machine) startsWithDrive() bool {
	end := m.at(m.pointer + 2)
	return m.pointer+2 <= len(m.input) && isDrive(string(m.input[m.pointer:m.pointer+2])) &&
		(end == eof || strings.ContainsRune(`/\?#`, end))
}

func (m *machine) fileSlash(c rune) {
	if c == '/' || c == '\\' {
		m.state = (*machine).fileHost
		return
	}
	if m.base != nil && m.base.Scheme == "file" {
		m.url.Host = m.base.Host
		if !m.startsWithDrive() && len(m.base.path) > 0 && isNormalDrive(m.base.path[0]) {
			m.url.path = append(m.url.path, m.base.path[0])
		}
	}
	m.again((*machine).path)
}

func (m *machine) fileHost(c rune) {
	if c != eof && !strings.ContainsRune(`/\?#`, c) {
		m.buffer = append(m.buffer, c)
		return
	}
	m.pointer--
	switch {
	case isDrive(string(m.buffer)):
		m.state = (*machine).path // keeps the buffer
		return
	case len(m.buffer) == 0:
		m.url.Host = ""
	default:
		m.setHost(false)
		if m.url.Host == "localhost" {
			m.url.Host = ""
		}
	}
	m.state = (*machine).pathStart
}

func (m *machine) pathStart(c rune) {
	switch {
	case m.url.Special():
		m.state = (*machine).path
		if c != '/' && c != '\\' {
			m.pointer--
		}
	case c == '?':
		m.url.HasQuery = true
		m.state = (*machine).query
	case c == '#':
		m.url.HasFragment = true
		m.state = (*machine).fragment
	case c != eof:
		m.state = (*machine).path
		if c != '/' {
			m.pointer--
		}
	}
}

func (m *machine) path(c rune) {
	slash := c == '/' || m.specialSlash(c)
	if !slash && c != eof && c != '?' && c != '#' {
		m.buffer = append(m.buffer, []rune(escape(c, pathSet))...)
		return
	}
	segment := string(m.buffer)
	switch strings.ReplaceAll(strings.ToLower(segment), "%2e", ".") {
	case "..":
		m.shorten()
		if !slash {
			m.url.path = append(m.url.path, "")
		}
	case ".":
		if !slash {
			m.url.path = append(m.url.path, "")
		}
	default:
		if m.url.Scheme == "file" && len(m.url.path) == 0 && isDrive(segment) {
			segment = segment[:1] + ":"
		}
		m.url.path = append(m.url.path, segment)
	}
	m.buffer = nil
	m.startTail(c)
}

// startTail starts the query or the fragment if c is its delimiter.
func (m *machine) startTail(c rune) {
	switch c {
	case '?':
		m.url.HasQuery = true
		m.state = (*machine).query
	case '#':
		m.url.HasFragment = true
		m.state = (*machine).fragment
	}
}

func (m *machine) opaquePath(c rune) {
	switch {
	case c == '?' || c == '#':
		m.startTail(c)
	case c == ' ' && (m.remaining("?") || m.remaining("#")):
		m.url.path[0] += "%20"
	case c != eof:
		m.url.path[0] += escape(c, "")
	}
}

func (m *machine) query(c rune) {
	set := querySet
	if m.url.Special() {
		set += "'"
	}
	switch c {
	case '#':
		m.startTail(c)
	case eof:
	default:
		m.url.Query += escape(c, set)
	}
}

func (m *machine) fragment(c rune) {
	if c != eof {
		m.url.Fragment += escape(c, " \"<>`")
	}
}

// shorten removes the last segment, but never a drive letter.
func (m *machine) shorten() {
	path := m.url.path
	if m.url.Scheme == "file" && len(path) == 1 && isNormalDrive(path[0]) || len(path) == 0 {
		return
	}
	m.url.path = path[:len(path)-1]
}

func isNormalDrive(s string) bool { return isDrive(s) && s[1] == ':' }

func (m *machine) copyAuthority() {
	m.url.Username, m.url.Password = m.base.Username, m.base.Password
	m.url.Host, m.url.HasHost, m.url.Port = m.base.Host, m.base.HasHost, m.base.Port
}

func (m *machine) copyPath() { m.url.path = slices.Clone(m.base.path) }

func (m *machine) copyQuery() { m.url.Query, m.url.HasQuery = m.base.Query, m.base.HasQuery }

const (
	querySet    = " \"#<>"
	pathSet     = querySet + "?^`{}"
	userinfoSet = pathSet + "/:;=@[\\]|"
)

// escape percent-encodes c if it is a control character, beyond ASCII, or in the set.
func escape(c rune, set string) string {
	if c > 0x1f && c < 0x7f && !strings.ContainsRune(set, c) {
		return string(c)
	}
	out := ""
	for _, b := range []byte(string(c)) {
		out += fmt.Sprintf("%%%02X", b)
	}
	return out
}
