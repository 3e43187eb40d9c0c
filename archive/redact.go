package archive

import (
	"bytes"
	"net/textproto"
)

// redactHeads replaces the secrets in both heads.
func (c *Capture) redactHeads(secret func(field string, secret bool) bool) {
	var request, response bool
	if n := headLen(c.Request); n > 0 {
		var head []byte
		if head, request = redact(c.Request[:n], secret); request {
			c.Request = append(head, c.Request[n:]...)
		}
	}
	c.Head, response = redact(c.Head, secret)
	c.redacted = request || response
}

// secrets are the fields that let whoever reads them act for somebody.
var secrets = map[string]bool{"Authorization": true, "Proxy-Authorization": true, "Cookie": true,
	"Set-Cookie": true}

// redact returns a head whose secret fields have no values, and whether that changed it.
func redact(head []byte, secret func(field string, secret bool) bool) (_ []byte, changed bool) {
	var out []byte
	rest, within := head, false
	for n := 0; len(rest) > 0; n++ {
		end := bytes.IndexByte(rest, '\n') + 1
		if end == 0 {
			end = len(rest)
		}
		line := rest[:end]
		rest = rest[end:]
		if within && (line[0] == ' ' || line[0] == '\t') {
			continue // it goes on with a secret
		}
		name, _, found := bytes.Cut(line, []byte(":"))
		field := textproto.CanonicalMIMEHeaderKey(string(bytes.TrimRight(name, " \t")))
		if within = n > 0 && found && secret(field, secrets[field]); !within {
			out = append(out, line...)
			continue
		}
		changed = true
		out = append(append(out, name...), ": redacted"...)
		out = append(out, line[len(bytes.TrimRight(line, "\r\n")):]...)
	}
	if !changed {
		return head, false
	}
	return out, true
}
