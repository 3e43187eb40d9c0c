package botauth

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// DirectoryPath is where sites look for the key directory of an origin.
const DirectoryPath = "/.well-known/http-message-signatures-directory"

// The directory may be cached for an hour, so that a new key is soon known. Its signatures are
// valid for a week: lists of known crawlers copy directories, and drop those whose signatures have
// expired.
const (
	directoryAge = time.Hour
	directoryTTL = 7 * 24 * time.Hour
)

// jwk is a public key as RFC 8037 writes it.
type jwk struct {
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	ID    string `json:"kid"`
	X     string `json:"x"`
	Use   string `json:"use"`
	From  int64  `json:"nbf,omitempty"`
	Until int64  `json:"exp,omitempty"`
}

// directory returns the keys that have not expired, as a JSON Web Key Set.
func directory(keys []namedKey) []byte {
	set := struct {
		Keys []jwk `json:"keys"`
	}{[]jwk{}}
	for _, key := range keys {
		k := jwk{Type: "OKP", Curve: "Ed25519", ID: key.id, X: key.public(), Use: "sig"}
		if !key.From.IsZero() {
			k.From = key.From.Unix()
		}
		if !key.Until.IsZero() {
			k.Until = key.Until.Unix()
		}
		set.Keys = append(set.Keys, k)
	}
	text, _ := json.Marshal(set) // strings and numbers can always be marshalled
	return text
}

// ServeHTTP answers any request with the key directory, signed with each of its keys. It belongs at
// the URL of Options.Agent, such as [DirectoryPath] on that host, with TLS.
func (s *Signer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	var keys []namedKey
	for _, key := range *s.keys.Load() {
		if !key.expired(now) {
			keys = append(keys, key)
		}
	}
	body, h := directory(keys), w.Header()
	h.Set("Content-Type", "application/http-message-signatures-directory+json")
	digest := sha256.Sum256(body)
	h.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(digest[:])+":")
	// If it were signed for any requested host, the keys could be presented as those of any host
	// that forwards requests.
	if host := strings.TrimSuffix(strings.ToLower(r.Host), ":443"); host == s.authority {
		signDirectory(h, keys, host, now)
	}
	h.Set("Etag", fmt.Sprintf(`"%x"`, digest[:8]))
	h.Set("Cache-Control", fmt.Sprintf("max-age=%d", int(directoryAge.Seconds())))
	whole := *r // the digest is that of the whole directory
	whole.Header = r.Header.Clone()
	whole.Header.Del("Range")
	http.ServeContent(w, &whole, "", time.Time{}, bytes.NewReader(body))
}

// signDirectory proves with each key that it belongs to host.
func signDirectory(h http.Header, keys []namedKey, host string, now time.Time) {
	base := `"@authority";req: ` + host + "\n" + `"content-digest": ` + h.Get("Content-Digest") + "\n"
	var inputs, signatures []string
	for i, key := range keys {
		expires := now.Add(directoryTTL)
		if !key.Until.IsZero() && key.Until.Before(expires) {
			expires = key.Until
		}
		params := fmt.Sprintf(`("@authority";req "content-digest");created=%d;keyid="%s";alg="ed25519"`+
			`;expires=%d;tag="http-message-signatures-directory"`, now.Unix(), key.id, expires.Unix())
		name := fmt.Sprintf("binding%d=", i)
		inputs = append(inputs, name+params)
		signatures = append(signatures, name+key.signature(base, params))
	}
	h.Set("Signature-Input", strings.Join(inputs, ", "))
	h.Set("Signature", strings.Join(signatures, ", "))
}
