package fetch

import "time"

// timing holds the instants of an exchange while it goes on.
type timing struct {
	start, resolved, dialled, secured, connected, wroteRequest, firstByte, done time.Time
}

// Wait returns how long the server took to begin its answer; 0 if that was not seen.
func (r *Response) Wait() time.Duration {
	if r.WroteRequest.IsZero() || r.FirstByte.IsZero() {
		return 0
	}
	return max(r.FirstByte.Sub(r.WroteRequest), 0)
}
