package cookies_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/spinneret-go/spinneret/fetch/cookies"
)

// Any http.Client can use a Jar. The file is one that a browser has exported.
func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "visited", Value: "yes"})
		fmt.Println("Cookie:", r.Header.Get("Cookie"))
	}))
	defer site.Close()
	jar := new(cookies.Jar)
	const file = "127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\tsecret\n"
	if err := jar.Load(strings.NewReader(file)); err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Jar: jar}
	for range 2 {
		resp, err := client.Get(site.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}
	// Output:
	// Cookie: session=secret
	// Cookie: session=secret; visited=yes
}
