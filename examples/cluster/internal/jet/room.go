package jet

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// DefaultMaxBytes bounds a stream unless the options say otherwise. The brokers reserve it for each
// stream, so that a crawl of 48 fits on a laptop.
const DefaultMaxBytes = 64 << 20

// A RoomError means that the brokers have less disk than the streams of a crawl reserve.
type RoomError struct {
	Bytes   int64 // of one stream
	Streams int   // of the crawl
	Made    int   // before the brokers refused
	Err     error // of the broker
}

func (e *RoomError) Error() string {
	return fmt.Sprintf("the brokers have too little disk: %d streams of %s reserve %s on each broker, "+
		"which refused stream %d (%v); give smaller streams, such as -stream-bytes %d, or "+
		"free disk or raise max_file_store, and start the brokers again",
		e.Streams, inMiB(e.Bytes), inMiB(e.Bytes*int64(e.Streams)), e.Made+1, e.Err,
		e.fitting())
}

func (e *RoomError) Unwrap() error { return e.Err }

// fitting returns a size at which all streams fit into the room of those that were created, with a
// quarter to spare. If there were none, all that is known is that one did not fit. Several brokers
// may promise more than they have; then the next error has a smaller size.
func (e *RoomError) fitting() int64 {
	had := max(e.Bytes*int64(e.Made)*3/4, e.Bytes/2)
	size := had / int64(e.Streams)
	if size > 1<<20 {
		size &^= 1<<20 - 1
	}
	return max(size, MinMaxBytes)
}

// MinMaxBytes is the least useful bound: room for two messages of the largest size.
const MinMaxBytes = 2 << 20

func inMiB(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// noRoom reports whether a broker refuses a stream because of its size.
func noRoom(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode {
	case 10047, 10023, 10028:
		return true
	}
	return api.ErrorCode == noPeers && strings.Contains(api.Description, "insufficient storage")
}
