package export

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"time"
)

// packageDigest is the hash of the list of parts, and its signature.
type packageDigest struct {
	Path   string      `json:"path"`
	Hash   string      `json:"hash"`
	Signed *signedHash `json:"signedData,omitempty"`
}

// signedHash is an anonymous signature of WACZ Signing and Verification 0.1.0, section 2.1.
type signedHash struct {
	Hash      string `json:"hash"`
	Signature string `json:"signature"`
	PublicKey string `json:"publicKey"`
	Created   string `json:"created"`
	Software  string `json:"software"`
}

// sign signs a hash as browsers do: the signature is r and s, concatenated, not ASN.1.
func sign(o Options, hash string) (*signedHash, error) {
	public, err := x509.MarshalPKIXPublicKey(&o.Key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	sum := sha256.Sum256([]byte(hash))
	r, s, err := ecdsa.Sign(rand.Reader, o.Key, sum[:])
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	size := (o.Key.Curve.Params().BitSize + 7) / 8
	signature := make([]byte, 2*size)
	r.FillBytes(signature[:size])
	s.FillBytes(signature[size:])
	return &signedHash{Hash: hash, Signature: base64.StdEncoding.EncodeToString(signature),
		PublicKey: base64.StdEncoding.EncodeToString(public), Software: "spinneret",
		Created: o.Created.UTC().Format(time.RFC3339)}, nil
}
