package botauth

import (
	"net/http"
	"time"
)

// SignWith is Sign with a given nonce and member of Signature-Agent.
func (s *Signer) SignWith(req *http.Request, now time.Time, nonce, member string) error {
	return s.sign(req, now, nonce, member)
}
