// Package cause reports why a context has ended.
package cause

import (
	"context"
	"errors"
)

// Of returns nil while ctx has not ended, and then an error by which errors.Is finds both ctx.Err()
// and the cause that context.WithCancelCause and its like were given.
func Of(ctx context.Context) error {
	err, why := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(why, err) {
		return why
	}
	return &ended{err, why}
}

type ended struct{ err, why error }

// Error returns the text of the cause, as net/http does.
func (e *ended) Error() string { return e.why.Error() }

func (e *ended) Unwrap() []error { return []error{e.why, e.err} }

// Timeout reports whether the deadline has passed. An http.Client asks the error itself.
func (e *ended) Timeout() bool { return e.err == context.DeadlineExceeded }
