package botauth

import (
	"net/http"
	"time"
)

// SignWith is Sign with a nonce that is known.
func (s *Signer) SignWith(req *http.Request, now time.Time, nonce string) {
	s.sign(req, now, nonce)
}
