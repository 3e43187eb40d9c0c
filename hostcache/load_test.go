package hostcache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/hostcache"
)

// slow is a loader that takes some time and then knows the host.
func slow(took time.Duration) hostcache.Loader[[16]byte] {
	return func(context.Context, string) ([16]byte, time.Duration, error) {
		time.Sleep(took)
		return [16]byte{7}, 0, nil
	}
}

func TestAThousandWaitForOneLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[string](hostcache.Options{})
		var calls, right atomic.Int32
		load := func(_ context.Context, host string) (string, time.Duration, error) {
			calls.Add(1)
			time.Sleep(time.Second)
			return "value of " + host, 0, nil
		}
		for range 1000 {
			go func() {
				if v, err := c.Load(t.Context(), "a.test", load); err == nil && v == "value of a.test" {
					right.Add(1)
				}
			}()
		}
		synctest.Wait()
		require.Equal(t, 1, c.Stats().InFlight)
		time.Sleep(time.Second)
		synctest.Wait()
		require.EqualValues(t, 1000, right.Load())
		_, err := c.Load(t.Context(), "a.test", load)
		require.NoError(t, err)
		require.EqualValues(t, 1, calls.Load())
		st := c.Stats()
		require.Equal(t, [3]uint64{1, 1000, 1}, [3]uint64{st.Loads, st.Misses, st.Hits})
		require.Zero(t, st.InFlight)
	})
}

func TestWhatALoaderReturnsDecidesWhatIsKept(t *testing.T) {
	other := errors.New("timeout")
	for _, tt := range []struct {
		name string
		ttl  time.Duration
		err  error
		kept time.Duration // 0: not at all
		next error         // of a second Load
	}{
		{"value with a ttl", time.Minute, nil, time.Minute, nil},
		{"value without a ttl", 0, nil, hostcache.DefaultTTL, nil},
		{"value not to be kept", -1, nil, 0, nil},
		{"negative", time.Minute, hostcache.ErrNegative, time.Minute, hostcache.ErrNegative},
		{"negative, wrapped, without a ttl", 0, fmt.Errorf("%w: NXDOMAIN", hostcache.ErrNegative),
			hostcache.DefaultNegativeTTL, hostcache.ErrNegative},
		{"negative, not to be kept", -1, hostcache.ErrNegative, 0, nil},
		{"other error", time.Minute, other, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := hostcache.New[int](hostcache.Options{})
				v, err := c.Load(t.Context(), "a.test",
					func(context.Context, string) (int, time.Duration, error) {
						return 42, tt.ttl, tt.err
					})
				require.Equal(t, 42, v)
				require.Equal(t, tt.err, err)
				e, known := c.Lookup("a.test")
				require.Equal(t, tt.kept > 0, known)
				if known {
					require.Equal(t, hostcache.Entry[int]{Value: 42, Negative: tt.err != nil,
						Expires: e.Expires}, plain(e))
					require.True(t, time.Now().Add(tt.kept).Equal(e.Expires))
				}
				_, err = c.Load(t.Context(), "a.test",
					func(context.Context, string) (int, time.Duration, error) { return 1, 0, nil })
				require.ErrorIs(t, err, tt.next)
			})
		})
	}
}

// TestLoadersRunUnderNoLock has a loader use the cache for its own host and for another one.
func TestLoadersRunUnderNoLock(t *testing.T) {
	c := hostcache.New[int](hostcache.Options{MaxBytes: 1 << 20}) // one shard
	five := func(context.Context, string) (int, time.Duration, error) { return 5, 0, nil }
	v, err := c.Load(t.Context(), "www.a.test",
		func(ctx context.Context, _ string) (int, time.Duration, error) {
			c.Set("www.a.test", 1, 0)
			_, _ = c.Get("www.a.test")
			v, err := c.Load(ctx, "a.test", five)
			return v, 0, err
		})
	require.NoError(t, err)
	require.Equal(t, 5, v)
}

func TestWaitersLeaveWhenTheirContextsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[string](hostcache.Options{})
		var cancelled atomic.Bool
		load := func(ctx context.Context, _ string) (string, time.Duration, error) {
			require.Equal(t, "first", ctx.Value(keyType{}))
			select {
			case <-ctx.Done():
				cancelled.Store(true)
				return "", 0, ctx.Err()
			case <-time.After(3 * time.Second):
				return "late", 0, nil
			}
		}
		reason := errors.New("the first has gone")
		first, end := context.WithCancelCause(context.WithValue(t.Context(), keyType{}, "first"))
		second, endSecond := context.WithTimeout(t.Context(), 2*time.Second)
		defer endSecond()
		results := make(chan error, 3)
		go func() { _, err := c.Load(first, "a.test", load); results <- err }()
		synctest.Wait()
		go func() { _, err := c.Load(second, "a.test", load); results <- err }()
		synctest.Wait()

		end(reason)
		require.Equal(t, reason, <-results)
		require.False(t, cancelled.Load(), "the second still waits")
		require.Equal(t, context.DeadlineExceeded, <-results)
		synctest.Wait()
		require.True(t, cancelled.Load(), "nobody waits any more")
		require.Zero(t, c.Stats().InFlight)

		_, err := c.Load(first, "a.test", load)
		require.Equal(t, reason, err, "a context that has ended starts nothing")
		require.EqualValues(t, 1, c.Stats().Loads)
	})
}

type keyType struct{}

// TestAnAbandonedLoaderHoldsNobodyUp has a loader that does not heed its context: who comes later
// does not wait for it, and what it brings is kept.
func TestAnAbandonedLoaderHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[string](hostcache.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Load(ctx, "a.test",
			func(context.Context, string) (string, time.Duration, error) {
				time.Sleep(time.Minute)
				return "of the deaf one", 0, nil
			})
		require.Equal(t, context.DeadlineExceeded, err)
		v, err := c.Load(t.Context(), "a.test",
			func(context.Context, string) (string, time.Duration, error) {
				return "of the second one", time.Second, nil
			})
		require.NoError(t, err)
		require.Equal(t, "of the second one", v)
		time.Sleep(time.Minute)
		v, _ = c.Get("a.test")
		require.Equal(t, "of the deaf one", v)
	})
}

func TestLoadersThatPanicWedgeNobody(t *testing.T) {
	cause := errors.New("cause")
	for _, tt := range []struct {
		name  string
		fail  func()
		value any
	}{
		{"panic", func() { panic(cause) }, cause},
		{"end of the goroutine", runtime.Goexit, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := hostcache.New[int](hostcache.Options{})
				failed := 0
				results := make(chan error)
				for range 10 {
					go func() {
						_, err := c.Load(t.Context(), "a.test",
							func(context.Context, string) (int, time.Duration, error) {
								time.Sleep(time.Second)
								tt.fail()
								return 0, 0, nil
							})
						results <- err
					}()
				}
				for range 10 {
					err := <-results
					require.ErrorIs(t, err, hostcache.ErrLoader)
					panicked, ok := errors.AsType[*hostcache.PanicError](err)
					require.True(t, ok)
					require.Equal(t, "a.test", panicked.Host)
					require.Equal(t, tt.value, panicked.Value)
					require.Contains(t, err.Error(), "a.test")
					failed++
				}
				require.Equal(t, 10, failed)
				require.EqualValues(t, 1, c.Stats().Loads)
				require.Zero(t, c.Len())
			})
		})
	}
}
