package botauth_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/fetch/botauth"
)

// This file is a verifier of Web Bot Auth that follows draft-ietf-webbotauth-httpsig-protocol, RFC
// 9421 and RFC 9651, independently of the signer: it parses fields, accepts components in any
// order, and fetches the directory that the request names.

// item is a member of a structured field: an inner list, a string, a token or bytes, with its
// parameters. raw is its original text.
type item struct {
	raw    string
	list   []item
	value  string
	params map[string]string
}

// reader reads the structured fields (RFC 9651, 4.2) that signatures use.
type reader struct{ in string }

var errField = errors.New("malformed field")

func (r *reader) take(prefix string) bool {
	rest, ok := strings.CutPrefix(r.in, prefix)
	r.in = rest
	return ok
}

func (r *reader) until(stop string) string {
	n := strings.IndexAny(r.in+stop[:1], stop)
	text := r.in[:n]
	r.in = r.in[n:]
	return text
}

// bare reads a string, bytes, a number or a token.
func (r *reader) bare() (string, error) {
	switch {
	case r.take(`"`):
		text := r.until(`"`)
		if !r.take(`"`) || strings.Contains(text, `\`) {
			return "", errField
		}
		return text, nil
	case r.take(":"):
		text := r.until(":")
		if !r.take(":") {
			return "", errField
		}
		bytes, err := base64.StdEncoding.DecodeString(text)
		return string(bytes), err
	}
	if text := r.until(`;,) `); text != "" {
		return text, nil
	}
	return "", errField
}

func (r *reader) item() (it item, err error) {
	before := r.in
	if r.take("(") {
		for !r.take(")") {
			member, err := r.item()
			if err != nil || r.in == "" {
				return it, errField
			}
			it.list = append(it.list, member)
			r.in = strings.TrimLeft(r.in, " ")
		}
	} else if it.value, err = r.bare(); err != nil {
		return it, err
	}
	it.params = map[string]string{}
	for r.take(";") {
		name, value := r.until(`=;,) `), "?1"
		if r.take("=") {
			if value, err = r.bare(); err != nil {
				return it, err
			}
		}
		it.params[name] = value
	}
	it.raw = before[:len(before)-len(r.in)]
	return it, nil
}

func dictionary(h http.Header, name string) (map[string]item, error) {
	r, members := reader{strings.Join(h.Values(name), ", ")}, map[string]item{}
	for r.in != "" {
		key := r.until("=,")
		if !r.take("=") {
			return nil, errField
		}
		member, err := r.item()
		if err != nil {
			return nil, err
		}
		members[key] = member
		if r.in = strings.TrimLeft(r.in, " "); r.in != "" && !r.take(",") {
			return nil, errField
		}
		r.in = strings.TrimLeft(r.in, " ")
	}
	return members, nil
}

// message is the subject of a signature: a request, or a response with its request.
type message struct {
	header                            http.Header
	method, scheme, authority, target string // of the request
	response                          bool
}

// component returns the value of a covered component (RFC 9421, 2).
func (m message) component(c item) (string, error) {
	_, ofRequest := c.params["req"]
	path, query, _ := strings.Cut(m.target, "?")
	derived := map[string]string{
		"@authority": m.authority, "@method": m.method, "@scheme": m.scheme, "@path": path, "@query": "?" + query,
		"@target-uri": m.scheme + "://" + m.authority + m.target,
	}
	switch value := derived[c.value]; {
	case value != "" && ofRequest == m.response:
		return value, nil
	case strings.HasPrefix(c.value, "@") || ofRequest:
		return "", fmt.Errorf("component %s", c.raw)
	case c.params["key"] != "":
		members, err := dictionary(m.header, c.value)
		member, ok := members[c.params["key"]]
		if err != nil || !ok {
			return "", fmt.Errorf("no member for %s", c.raw)
		}
		return member.raw, nil
	case len(c.params) > 0:
		return "", fmt.Errorf("component %s", c.raw)
	}
	if len(m.header.Values(c.value)) == 0 {
		return "", fmt.Errorf("no field %s", c.raw)
	}
	return strings.Join(m.header.Values(c.value), ", "), nil
}

// verified checks the signature called label, made with key, and returns the components it covers.
func (m message) verified(label string, key ed25519.PublicKey, tag string, now time.Time) ([]string, error) {
	inputs, err := dictionary(m.header, "Signature-Input")
	signatures, err2 := dictionary(m.header, "Signature")
	input, ok := inputs[label]
	if err != nil || err2 != nil || !ok {
		return nil, errors.Join(errField, err, err2)
	}
	var base strings.Builder
	var covered []string
	for _, c := range input.list {
		value, err := m.component(c)
		if err != nil {
			return nil, err
		}
		covered = append(covered, c.raw)
		base.WriteString(c.raw + ": " + value + "\n")
	}
	base.WriteString(`"@signature-params": ` + input.raw)
	created, _ := strconv.ParseInt(input.params["created"], 10, 64)
	expires, _ := strconv.ParseInt(input.params["expires"], 10, 64)
	switch {
	case input.params["tag"] != tag:
		return nil, fmt.Errorf("tag %q", input.params["tag"])
	case now.Unix()+1 < created || now.Unix() >= expires: // the clocks may differ by a second
		return nil, errors.New("not valid now")
	case !ed25519.Verify(key, []byte(base.String()), []byte(signatures[label].value)):
		return nil, errors.New("wrong signature")
	}
	return covered, nil
}

// thumbprint names a key (RFC 8037, A.3).
func thumbprint(x string) string {
	hash := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return base64.RawURLEncoding.EncodeToString(hash[:])
}

// directoryOf fetches the directory at an URL, checks it and returns the keys that are valid now.
func directoryOf(client *http.Client, url string, now time.Time) (map[string]ed25519.PublicKey, error) {
	resp, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	const mediaType = "application/http-message-signatures-directory+json"
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != mediaType {
		return nil, fmt.Errorf("%s %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	digest, sum := sha256.Sum256(body), ""
	if members, err := dictionary(resp.Header, "Content-Digest"); err == nil {
		sum = members["sha-256"].value
	}
	if sum != string(digest[:]) {
		return nil, errors.New("wrong digest")
	}
	var set struct {
		Keys []struct {
			Kid, Kty, Crv, X string
			Nbf, Exp         int64
		}
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, err
	}
	inputs, err := dictionary(resp.Header, "Signature-Input")
	if err != nil {
		return nil, err
	}
	keys := map[string]ed25519.PublicKey{}
	for _, k := range set.Keys {
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || k.Kty != "OKP" || k.Crv != "Ed25519" || k.Kid != thumbprint(k.X) {
			return nil, fmt.Errorf("key %+v: %w", k, err)
		}
		proven := false
		for label, input := range inputs {
			if input.params["keyid"] == k.Kid {
				m := message{header: resp.Header, authority: resp.Request.URL.Host, response: true}
				covered, err := m.verified(label, x, "http-message-signatures-directory", now)
				if err != nil {
					return nil, err
				}
				proven = strings.Join(covered, " ") == `"@authority";req "content-digest"`
			}
		}
		if !proven {
			return nil, fmt.Errorf("key %s does not sign its directory", k.Kid)
		}
		if now.Unix() >= k.Nbf && (k.Exp == 0 || now.Unix() < k.Exp) {
			keys[k.Kid] = x
		}
	}
	return keys, nil
}

// received returns a request as the server sees it.
func received(r *http.Request) message {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	target := strings.TrimPrefix(r.RequestURI, scheme+"://"+r.Host)
	return message{header: r.Header, method: r.Method, scheme: scheme, authority: strings.ToLower(r.Host), target: target}
}

// A sender is who has signed a request, and how.
type sender struct {
	url     string // of the key directory
	label   string
	covered []string
	params  map[string]string
}

// verify returns the sender of a request, whose Signature-Agent has a form.
func (m message) verify(client *http.Client, form botauth.Form, now time.Time) (who sender, err error) {
	inputs, err := dictionary(m.header, "Signature-Input")
	if err != nil {
		return who, err
	}
	if len(inputs) != 1 {
		return who, errors.New("not one signature")
	}
	for label, input := range inputs {
		who = sender{label: label, params: input.params}
		component := `"signature-agent"`
		if form == botauth.OriginString {
			r := reader{m.header.Get("Signature-Agent")}
			if !r.take(`"`) {
				return who, errors.New("not a string")
			}
			who.url = r.until(`"`)
		} else {
			agents, err := dictionary(m.header, "Signature-Agent")
			if err != nil {
				return who, err
			}
			if len(agents[label].params) > 0 {
				return who, errors.New("a member with parameters")
			}
			who.url = agents[label].value
			component += `;key="` + label + `"`
		}
		if form != botauth.DirectoryURL {
			who.url += botauth.DirectoryPath
		}
		keys, err := directoryOf(client, who.url, now)
		if err != nil {
			return who, err
		}
		key, ok := keys[input.params["keyid"]]
		if !ok {
			return who, errors.New("unknown key")
		}
		who.covered, err = m.verified(label, key, "web-bot-auth", now)
		if err != nil {
			return who, err
		}
		host := slices.Contains(who.covered, `"@authority"`) || slices.Contains(who.covered, `"@target-uri"`)
		if !host || !slices.Contains(who.covered, component) {
			return who, fmt.Errorf("covers only %s", who.covered)
		}
	}
	return who, nil
}
