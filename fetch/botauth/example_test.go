package botauth_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/botauth"
)

func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := r.Header.Get("Signature-Agent")
		signed := strings.HasPrefix(r.Header.Get("Signature"), "sig1=:")
		fmt.Fprintln(w, who, signed)
	}))
	defer site.Close()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) // yours is a secret
	signer, err := botauth.New(key, botauth.Options{Agent: "https://crawler.test"})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := fetch.New(fetch.Options{Reach: fetch.Loopback, Wrap: signer.RoundTripper})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseIdle()
	page, err := client.Get(context.Background(), site.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(page.Body))
	// Output:
	// "https://crawler.test" true
}
