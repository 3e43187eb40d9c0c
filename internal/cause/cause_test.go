package cause_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/cause"
)

func TestOf(t *testing.T) {
	require.NoError(t, cause.Of(t.Context()))
	why := errors.New("the page is not needed any more")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	err := cause.Of(ctx)
	require.ErrorIs(t, err, why)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, why.Error(), err.Error())
	require.False(t, err.(interface{ Timeout() bool }).Timeout())

	ctx, stop := context.WithDeadlineCause(t.Context(), time.Time{}, why)
	defer stop()
	err = cause.Of(ctx)
	require.ErrorIs(t, err, why)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.True(t, err.(interface{ Timeout() bool }).Timeout())

	ctx, end := context.WithCancel(t.Context())
	end()
	require.Equal(t, context.Canceled, cause.Of(ctx), "nobody gave a cause")
}
