package botauth

import (
	"net/http"
	"time"
)

// SignWith is Sign with a given nonce and label.
func (s *Signer) SignWith(req *http.Request, now time.Time, nonce, label string) bool {
	return s.sign(req, now, requirement{label: label, components: []string{`"@authority"`}, nonce: nonce})
}

// Hosts returns of how many hosts a requirement is remembered.
func (s *Signer) Hosts() int { return len(s.required.held) }

// MostComponents returns how many components the longest requirement has that is remembered.
func (s *Signer) MostComponents() (most int) {
	for _, r := range s.required.held {
		most = max(most, len(r.components))
	}
	return most
}

// The bounds of what is remembered.
const (
	MaxHosts = maxHosts
	MaxField = maxField
)
