package fetch

import "time"

// Timing holds the instants of an exchange. A zero time is one that was not seen: a connection
// that is used again has neither been resolved nor dialled for.
type Timing struct {
	Start        time.Time // Get was called
	Resolved     time.Time // the host had an address
	Dialled      time.Time // the TCP connection stood
	Secured      time.Time // the TLS handshake was done
	Connected    time.Time // a connection was there, new or kept alive
	WroteRequest time.Time // the request was handed to the connection
	FirstByte    time.Time // the response began
	Done         time.Time // the last byte that Raw holds was there
}

// Resolve returns how long the look-up of the host's name took; 0 if there was none.
func (t Timing) Resolve() time.Duration { return span(t.Start, t.Resolved) }

// Dial returns how long the TCP connection took; 0 if there was one already.
func (t Timing) Dial() time.Duration { return span(t.Resolved, t.Dialled) }

// Handshake returns how long TLS took; 0 if there was none.
func (t Timing) Handshake() time.Duration { return span(t.Dialled, t.Secured) }

// Wait returns how long the server thought: from the end of the request to the first byte.
func (t Timing) Wait() time.Duration { return span(t.WroteRequest, t.FirstByte) }

// Transfer returns how long the response took from its first byte on.
func (t Timing) Transfer() time.Duration { return span(t.FirstByte, t.Done) }

// Total returns how long all of it took.
func (t Timing) Total() time.Duration { return span(t.Start, t.Done) }

func span(from, to time.Time) time.Duration {
	if from.IsZero() || to.IsZero() {
		return 0
	}
	return max(to.Sub(from), 0)
}
