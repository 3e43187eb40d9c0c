package clients

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// TestCookiesStayWithThePages checks that cookies of clients pass the layers, which add none to
// their own requests.
func TestCookiesStayWithThePages(t *testing.T) {
	for _, name := range []string{"net/http", "resty"} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			cookies := map[string][]string{}
			web := startWeb(t, webtest.Options{Handlers: map[string]http.Handler{
				"shop.test": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					cookies[r.URL.Path] = append(cookies[r.URL.Path], r.Header.Get("Cookie"))
					w.Header().Add("Set-Cookie", "basket="+r.URL.Path[1:]+"; Path=/; Max-Age=172800")
					w.Header().Set("Cache-Control", "max-age=300")
				}),
			}})
			get := clients[name](polite(t, web), habit{})
			for _, path := range []string{"one", "two"} {
				get(t.Context(), "http://shop.test/"+path)
			}
			require.Equal(t, []string{""}, cookies["/robots.txt"], name)
			require.Equal(t, "", cookies["/one"][0], name)
			require.Equal(t, []string{"basket=one"}, cookies["/two"], name)
		})
	}
}
