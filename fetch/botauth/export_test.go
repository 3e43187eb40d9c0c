package botauth

import (
	"net/http"
	"time"
)

// SignWith is Sign with a given nonce and label.
func (s *Signer) SignWith(req *http.Request, now time.Time, nonce, label string) bool {
	return s.sign(req, now, wish{label: label, components: []string{`"@authority"`}, nonce: nonce})
}

// Wishes returns how many hosts have a wish that is remembered.
func (s *Signer) Wishes() int { return len(s.wishes.held) }

// The bounds of wishes.
const (
	MaxWishes = maxWishes
	MaxWish   = maxWish
)
