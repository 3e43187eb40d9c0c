package archive

import (
	"bytes"
	"crypto/tls"
	"strings"
)

// protocols maps the versions of HTTP, as net/http names them, to what WARC-Protocol says: for h2
// and h3 the name in ALPN, for the others the one that crawlers have agreed on.
var protocols = map[string]string{
	"HTTP/1.0": "http/1.0", "HTTP/1.1": "http/1.1", "HTTP/2.0": "h2", "HTTP/3.0": "h3",
}

// tlsVersions does the same for TLS.
var tlsVersions = map[uint16]string{
	tls.VersionTLS10: "tls/1.0", tls.VersionTLS11: "tls/1.1", tls.VersionTLS12: "tls/1.2",
	tls.VersionTLS13: "tls/1.3",
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

// connection returns what a record says of the connection: the protocols from the inner one to the
// outer one, and the cipher suite.
func connection(protocol string, state *tls.ConnectionState) (names []string, suite string) {
	if name := protocols[protocol]; name == "h2" && state == nil {
		names = append(names, "h2c")
	} else if name != "" {
		names = append(names, name)
	}
	if state == nil {
		return names, ""
	}
	if name := tlsVersions[state.Version]; name != "" {
		names = append(names, name)
	}
	if state.CipherSuite != 0 {
		suite = tls.CipherSuiteName(state.CipherSuite)
	}
	return names, suite
}

// Protocol returns the protocol that a message was sent in, as net/http names it: "HTTP/2.0". It is
// "" if the record does not say.
func (rec *Record) Protocol() string {
	for _, value := range rec.Fields().Values("WARC-Protocol") {
		value = strings.ToLower(value)
		if value == "h2c" {
			value = "h2"
		}
		for name, written := range protocols {
			if value == written {
				return name
			}
		}
	}
	return ""
}

// TLS returns the version and the cipher suite of the connection that a message came over, and
// nothing else of its state. It is nil if the record does not say.
func (rec *Record) TLS() *tls.ConnectionState {
	state := &tls.ConnectionState{}
	for _, value := range rec.Fields().Values("WARC-Protocol") {
		for version, written := range tlsVersions {
			if strings.EqualFold(value, written) {
				state.Version = version
			}
		}
	}
	name := rec.Get("WARC-Cipher-Suite")
	for _, list := range [][]*tls.CipherSuite{tls.CipherSuites(), tls.InsecureCipherSuites()} {
		for _, suite := range list {
			if suite.Name == name {
				state.CipherSuite = suite.ID
			}
		}
	}
	if state.Version == 0 && state.CipherSuite == 0 {
		return nil
	}
	return state
}
