package warc

import (
	"crypto/tls"
	"maps"
	"slices"
	"strconv"
	"strings"
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

// SetConnection sets Protocols, from the inner one to the outer one, and CipherSuite. The protocol is
// one of HTTP as net/http names it, such as "HTTP/2.0"; the version of TLS and the cipher suite are
// numbers of package crypto/tls. What is empty or zero is left out.
func (h *Head) SetConnection(protocol string, version, cipherSuite uint16) {
	h.Protocols, h.CipherSuite = nil, ""
	if name := protocols[protocol]; name == "h2" && version == 0 {
		h.Protocols = append(h.Protocols, "h2c")
	} else if name != "" {
		h.Protocols = append(h.Protocols, name)
	}
	if name := tlsVersions[version]; name != "" {
		h.Protocols = append(h.Protocols, name)
	}
	if cipherSuite != 0 {
		h.CipherSuite = tls.CipherSuiteName(cipherSuite)
	}
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
