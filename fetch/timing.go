package fetch

import "time"

// timing records when an exchange got where, for Response.
type timing struct {
	start, resolved, dialed, secured, connected, wroteRequest, firstByte, done time.Time
}

// Wait returns the time from the request to the first byte of the response; 0 if unknown.
func (r *Response) Wait() time.Duration {
	if r.WroteRequest.IsZero() || r.FirstByte.IsZero() {
		return 0
	}
	return max(r.FirstByte.Sub(r.WroteRequest), 0)
}
