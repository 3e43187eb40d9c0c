package warc

import (
	"crypto/tls"
	"strings"
)

// protocols maps the versions of HTTP, as net/http names them, to values of WARC-Protocol: for h2
// and h3 the name in ALPN, for the others the name that crawlers have agreed on.
var protocols = map[string]string{
	"HTTP/1.0": "http/1.0", "HTTP/1.1": "http/1.1", "HTTP/2.0": "h2", "HTTP/3.0": "h3",
}

// tlsVersions maps the numbers of TLS versions to values of WARC-Protocol.
var tlsVersions = map[uint16]string{
	0x0301: "tls/1.0", 0x0302: "tls/1.1", 0x0303: "tls/1.2", 0x0304: "tls/1.3",
}

// SetConnection sets Protocols, from the inner one to the outer one, and CipherSuite. The protocol
// is a version of HTTP as net/http names it, such as "HTTP/2.0". The version of TLS and the cipher
// suite are numbers of package crypto/tls. Empty or zero arguments are omitted.
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

// Protocol returns the protocol of a message as net/http names it, such as "HTTP/2.0". It is "" if
// the record does not have it.
func (rec *Record) Protocol() string {
	for _, value := range rec.Fields().Values("WARC-Protocol") {
		value = strings.ToLower(value)
		for name, known := range protocols {
			if value == known || value == "h2c" && known == "h2" {
				return name
			}
		}
	}
	return ""
}
