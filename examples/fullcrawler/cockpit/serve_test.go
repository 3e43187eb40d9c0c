package cockpit

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
)

// TestServeAnswersAtItsAddress: the address that serve prints is that of a page.
func TestServeAnswersAtItsAddress(t *testing.T) {
	a, err := archive.Open(t.TempDir(), archive.Options{})
	require.NoError(t, err)
	defer a.Close()
	s := serving{listen: "192.0.2.1:8077", names: "Mine.test"}
	for host, want := range map[string]int{"192.0.2.1:8077": http.StatusOK, "mine.test": http.StatusOK,
		"localhost": http.StatusOK, "192.0.2.2:8077": http.StatusMisdirectedRequest, "evil.test": http.StatusMisdirectedRequest} {
		w := httptest.NewRecorder()
		s.handler(a).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://"+host+"/", nil))
		require.Equal(t, want, w.Code, host)
	}
	require.Contains(t, ownNames(":8077"), "::")
	require.NotContains(t, ownNames(":8077"), "")
}
