package hostcache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/hostcache"
)

// slow is a loader that takes some time.
func slow[V any](took time.Duration) hostcache.Loader[V] {
	return func(context.Context, string) (v V, ttl time.Duration, err error) {
		time.Sleep(took)
		return v, time.Hour, nil
	}
}

// returns is a loader with a fixed result.
func returns[V any](v V, ttl time.Duration, err error) hostcache.Loader[V] {
	return func(context.Context, string) (V, time.Duration, error) { return v, ttl, err }
}

func TestAThousandWaitForOneLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[string](hostcache.Options{})
		var calls, right atomic.Int32
		load := func(_ context.Context, host string) (string, time.Duration, error) {
			calls.Add(1)
			time.Sleep(time.Second)
			return "value of " + host, time.Minute, nil
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

func TestLoadersSayWhatIsKept(t *testing.T) {
	other := errors.New("timeout")
	for _, tt := range []struct {
		name     string
		ttl      time.Duration
		err      error
		kept     time.Duration // 0: not at all
		negative bool
	}{
		{"value", time.Minute, nil, time.Minute, false},
		{"value of no ttl", 0, nil, 0, false},
		{"value of a negative ttl", -1, nil, 0, false},
		{"negative", time.Minute, hostcache.ErrNegative, time.Minute, true},
		{"wrapped", time.Minute, fmt.Errorf("%w: NXDOMAIN", hostcache.ErrNegative), time.Minute, true},
		{"negative of no ttl", 0, hostcache.ErrNegative, 0, true},
		{"failure on record", time.Minute, fmt.Errorf("%w: %w", other, hostcache.ErrStored), time.Minute, false},
		{"other error", time.Minute, other, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := hostcache.New[int](hostcache.Options{})
				v, err := c.Load(t.Context(), "a.test", returns(42, tt.ttl, tt.err))
				require.Equal(t, 42, v)
				if errors.Is(tt.err, hostcache.ErrStored) { // no cache above is to keep something
					require.EqualError(t, err, tt.err.Error())
					require.ErrorIs(t, err, other)
					require.NotErrorIs(t, err, hostcache.ErrStored)
				} else {
					require.Equal(t, tt.err, err)
				}
				e, known := c.Lookup("a.test")
				require.Equal(t, tt.kept > 0, known)
				_, err = c.Load(t.Context(), "a.test", returns(1, time.Minute, nil))
				if known {
					require.Equal(t, tt.negative, e.Negative)
					require.Equal(t, time.Now().Add(tt.kept).UTC(), e.Expires)
					require.Equal(t, tt.negative, errors.Is(err, hostcache.ErrNegative))
				} else {
					require.NoError(t, err, "it is loaded again")
				}
			})
		})
	}
}

// TestLoadersRunUnderNoLock has a loader that uses the cache for its own host and for another one.
func TestLoadersRunUnderNoLock(t *testing.T) {
	c := hostcache.New[int](hostcache.Options{MaxBytes: 1}) // one shard
	v, err := c.Load(t.Context(), "www.a.test",
		func(ctx context.Context, _ string) (int, time.Duration, error) {
			c.Set("www.a.test", 1, time.Hour)
			_, _ = c.Get("www.a.test")
			v, err := c.Load(ctx, "a.test", returns(5, time.Hour, nil))
			return v, time.Hour, err
		})
	require.NoError(t, err)
	require.Equal(t, 5, v)
	v, _ = c.Get("www.a.test")
	require.Equal(t, 1, v, "a Set during the load is newer")
}

// TestNewerKnowledgeStays has a loader that returns late, after the host was set or deleted.
func TestNewerKnowledgeStays(t *testing.T) {
	for name, change := range map[string]func(c *hostcache.Cache[string]){
		"set":      func(c *hostcache.Cache[string]) { c.Set("a.test", "newer", time.Hour) },
		"negative": func(c *hostcache.Cache[string]) { c.SetNegative("a.test", time.Hour) },
		"deleted":  func(c *hostcache.Cache[string]) { c.Delete("a.test") },
		"not kept": func(c *hostcache.Cache[string]) { c.Set("a.test", "", 0) },
	} {
		for _, abandoned := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/abandoned=%v", name, abandoned), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := hostcache.New[string](hostcache.Options{})
					ctx := t.Context()
					if abandoned {
						limited, cancel := context.WithTimeout(ctx, time.Second)
						defer cancel()
						ctx = limited
					}
					go func() {
						_, _ = c.Load(ctx, "a.test",
							func(context.Context, string) (string, time.Duration, error) {
								time.Sleep(time.Minute) // whatever the context says
								return "older", time.Hour, nil
							})
					}()
					time.Sleep(30 * time.Second)
					change(c)
					want, known := c.Lookup("a.test")
					time.Sleep(time.Minute)
					got, still := c.Lookup("a.test")
					require.Equal(t, known, still)
					require.Equal(t, want, got)
				})
			})
		}
	}
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
				return "late", time.Hour, nil
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
		require.True(t, cancelled.Load(), "no caller is waiting")
		require.Zero(t, c.Stats().InFlight)

		_, err := c.Load(first, "a.test", load)
		require.Equal(t, reason, err, "a context that has ended starts nothing")
		require.EqualValues(t, 1, c.Stats().Loads)
	})
}

type keyType struct{}

// TestAnAbandonedLoaderHoldsNobodyUp has a loader that ignores its context. A later caller does not
// wait for it, and its late result changes nothing.
func TestAnAbandonedLoaderHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[string](hostcache.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Load(ctx, "a.test",
			func(context.Context, string) (string, time.Duration, error) {
				time.Sleep(time.Minute)
				return "of the abandoned one", time.Hour, nil
			})
		require.Equal(t, context.DeadlineExceeded, err)
		v, err := c.Load(t.Context(), "a.test", returns("of the second one", time.Hour, nil))
		require.NoError(t, err)
		require.Equal(t, "of the second one", v)
		require.Equal(t, 1, c.Stats().InFlight, "the abandoned one runs")
		time.Sleep(time.Minute)
		require.Zero(t, c.Stats().InFlight)
		v, _ = c.Get("a.test")
		require.Equal(t, "of the second one", v)
	})
}

// TestLoadersInFlightAreCounted until they return, whatever happens to their host meanwhile.
func TestLoadersInFlightAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[string](hostcache.Options{})
		for range 3 {
			go func() { _, _ = c.Load(t.Context(), "a.test", slow[string](time.Second)) }()
			synctest.Wait()
			c.Set("a.test", "", 0)
		}
		require.Equal(t, 3, c.Stats().InFlight)
		time.Sleep(2 * time.Second)
		require.Zero(t, c.Stats().InFlight)
	})
}

// TestDropEndsNoFlight: whoever finds that a value is stale may have been overtaken by one who loads it.
func TestDropEndsNoFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[string](hostcache.Options{})
		isOld := func(v string) bool { return v == "old" }
		c.Set("a.test", "old", time.Hour)
		c.Set("b.test", "new", time.Hour)
		c.SetNegative("c.test", time.Hour)
		var calls, right atomic.Int32
		load := func(context.Context, string) (string, time.Duration, error) {
			calls.Add(1)
			time.Sleep(time.Second)
			return "new", time.Hour, nil
		}
		for range 10 {
			for _, host := range []string{"a.test", "b.test", "c.test", strings.Repeat("d", 300)} {
				c.Drop(host, isOld)
			}
			go func() {
				if v, err := c.Load(t.Context(), "a.test", load); v == "new" && err == nil {
					right.Add(1)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 1, calls.Load())
		require.EqualValues(t, 10, right.Load())
		require.Equal(t, 3, c.Len())
	})
}

// TestALoaderThatEndsItsGoroutine does not leave its callers waiting.
func TestALoaderThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[int](hostcache.Options{})
		results := make(chan error)
		for range 10 {
			go func() {
				_, err := c.Load(t.Context(), "a.test",
					func(context.Context, string) (int, time.Duration, error) {
						time.Sleep(time.Second)
						runtime.Goexit()
						return 0, 0, nil
					})
				results <- err
			}()
		}
		for range 10 {
			require.ErrorContains(t, <-results, "did not return")
		}
		require.EqualValues(t, 1, c.Stats().Loads)
		require.Zero(t, c.Stats().InFlight)
		require.Zero(t, c.Len())
	})
}

// TestHostsTooLongAreLoadedEachTime also makes one call for concurrent callers.
func TestHostsTooLongAreLoadedEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[int](hostcache.Options{})
		long := strings.Repeat("a", 300)
		for range 2 {
			for range 10 {
				go func() { _, _ = c.Load(t.Context(), long, slow[int](time.Second)) }()
			}
			time.Sleep(2 * time.Second)
		}
		require.EqualValues(t, 2, c.Stats().Loads)
		require.Zero(t, c.Len())
	})
}
