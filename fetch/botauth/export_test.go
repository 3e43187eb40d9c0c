package botauth

import (
	"net/http"
	"time"
)

// SignWith is Sign with a nonce and a member of Signature-Agent that are known.
func (s *Signer) SignWith(req *http.Request, now time.Time, nonce, member string) error {
	return s.sign(req, now, nonce, member)
}
