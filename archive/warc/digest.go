package warc

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base32"
	"encoding/hex"
	"hash"
	"strings"
)

// algorithms has the known algorithms by their label in lower case.
var algorithms = map[string]func() hash.Hash{
	"sha1": sha1.New, "sha-1": sha1.New, "md5": md5.New,
	"sha256": sha256.New, "sha-256": sha256.New, "sha512": sha512.New, "sha-512": sha512.New,
}

// Digest splits a labelled digest into the algorithm, in lower case and without hyphen, and the sum.
// Sums are in base 32 or hexadecimal, of any case. ok is false for an unknown algorithm or an invalid
// sum.
func (f Field) Digest() (algorithm string, sum []byte, ok bool) {
	label, value, _ := strings.Cut(f.Value, ":")
	label = strings.ToLower(label)
	make, known := algorithms[label]
	if !known {
		return "", nil, false
	}
	size := make().Size()
	sum, err := hex.DecodeString(value)
	if err != nil || len(sum) != size {
		value = strings.ToUpper(strings.TrimRight(value, "="))
		sum, err = base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(value)
	}
	if err != nil || len(sum) != size {
		return "", nil, false
	}
	return strings.ReplaceAll(label, "-", ""), sum, true
}

// check compares a block with its digest. It is reused.
type check struct {
	hashes map[string]hash.Hash
	hash   hash.Hash // nil if the block is not checked
	want   []byte
}

// begin starts a block. A block with an unknown kind of digest is not verified.
func (c *check) begin(labelled string) {
	c.hash = nil
	algorithm, sum, ok := Field{Value: labelled}.Digest()
	if !ok {
		return
	}
	if c.hashes == nil {
		c.hashes = map[string]hash.Hash{}
	}
	if c.hash = c.hashes[algorithm]; c.hash == nil {
		c.hash = algorithms[algorithm]()
		c.hashes[algorithm] = c.hash
	}
	c.hash.Reset()
	c.want = sum
}

// ofEmptyBlock reports whether the digest is that of an empty block. It is called before write.
func (c *check) ofEmptyBlock() bool { return c.hash != nil && c.matches() }

// write adds to the block, if it is checked.
func (c *check) write(p []byte) {
	if c.hash != nil {
		_, _ = c.hash.Write(p) // documented never to fail
	}
}

// matches reports whether the complete block matches its digest. It is true for unchecked blocks.
func (c *check) matches() bool {
	return c.hash == nil || bytes.Equal(c.hash.Sum(nil), c.want)
}
