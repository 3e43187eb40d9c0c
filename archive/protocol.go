package archive

import (
	"bytes"
	"crypto/tls"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// protocols maps the versions of HTTP, as net/http names them, to what WARC-Protocol says: for h2
// and h3 the name in ALPN, for the others the one that crawlers have agreed on.
var protocols = map[string]string{
	"HTTP/1.0": "http/1.0", "HTTP/1.1": "http/1.1", "HTTP/2.0": "h2", "HTTP/3.0": "h3",
}

// tlsVersions does the same for the versions of TLS, by their numbers.
var tlsVersions = map[uint16]string{
	0x0301: "tls/1.0", 0x0302: "tls/1.1", 0x0303: "tls/1.2", 0x0304: "tls/1.3",
}

// asHTTP1 returns a capture whose heads are those of HTTP/1.1, and the protocol that they were sent
// in, or "" if that is not told. HTTP/2 has no lines of text; readers of WARC files know those of
// HTTP/1 and no others, so that is what crawlers have settled on writing, with WARC-Protocol
// beside.
func (c *Capture) asHTTP1() (as Capture, protocol string) {
	as, protocol = *c, c.Protocol
	line, rest, found := bytes.Cut(c.Head, []byte("\n"))
	version, status, _ := bytes.Cut(line, []byte(" "))
	if later := laterHTTP(strings.TrimRight(string(version), "\r")); found && later != "" {
		if protocol == "" {
			protocol = later
		}
		status = bytes.TrimRight(status, "\r")
		if !bytes.ContainsRune(status, ' ') {
			status = append(bytes.Clone(status), ' ') // before the reason, which HTTP/2 does not have
		}
		as.Head = bytes.Join([][]byte{[]byte("HTTP/1.1 "), status, []byte("\r\n"), rest}, nil)
	}
	line, rest, found = bytes.Cut(c.Request, []byte("\n"))
	line = bytes.TrimRight(line, "\r")
	if at := bytes.LastIndexByte(line, ' '); found && at > 0 && laterHTTP(string(line[at+1:])) != "" {
		as.Request = bytes.Join([][]byte{line[:at], []byte(" HTTP/1.1\r\n"), rest}, nil)
	}
	return as, protocol
}

// laterHTTP returns a version of HTTP after 1.1 as net/http names it, or "" for another one.
func laterHTTP(version string) string {
	switch {
	case version == "HTTP/2" || version == "HTTP/2.0":
		return "HTTP/2.0"
	case version == "HTTP/3" || version == "HTTP/3.0":
		return "HTTP/3.0"
	}
	return ""
}

// headsField is in the records of heads that are not the bytes of the wire.
var headsField = []warc.Field{{Name: "Spinneret-Heads", Value: "rebuilt"}}

// extra returns the fields of a record that no standard has.
func (c *Capture) extra() []warc.Field {
	if c.Rebuilt {
		return headsField
	}
	return nil
}

// connection returns what a record says of the connection: the protocols from the inner one to the
// outer one, and the cipher suite.
func (c *Capture) connection() (names []string, suite string) {
	if name := protocols[c.Protocol]; name == "h2" && c.TLS == 0 {
		names = append(names, "h2c")
	} else if name != "" {
		names = append(names, name)
	}
	if name := tlsVersions[c.TLS]; name != "" {
		names = append(names, name)
	}
	if c.CipherSuite != 0 {
		suite = tls.CipherSuiteName(c.CipherSuite)
	}
	return names, suite
}

// Protocol returns the protocol that a message was sent in, as net/http names it: "HTTP/2.0". It is
// "" if the record does not say.
func (rec *Record) Protocol() string {
	values := rec.Fields().Values("WARC-Protocol")
	for _, name := range slices.Sorted(maps.Keys(protocols)) {
		if containsFold(values, protocols[name]) {
			return name
		}
	}
	if containsFold(values, "h2c") {
		return "HTTP/2.0"
	}
	return ""
}

// TLS returns the version of TLS and the cipher suite that a message came over, as numbers of
// package crypto/tls. They are 0 if the record does not say.
func (rec *Record) TLS() (version, cipherSuite uint16) {
	values := rec.Fields().Values("WARC-Protocol")
	for v, name := range tlsVersions {
		if containsFold(values, name) {
			version = max(version, v)
		}
	}
	name := rec.Get("WARC-Cipher-Suite")
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if suite.Name == name {
			return version, suite.ID
		}
	}
	id, _ := strconv.ParseUint(name, 0, 16) // 0 for a name that is not known
	return version, uint16(id)
}

func containsFold(values []string, name string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, name) })
}
