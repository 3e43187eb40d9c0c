package botauth_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/botauth"
)

func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed := strings.HasPrefix(r.Header.Get("Signature"), "sig1=:")
		fmt.Fprintln(w, r.Header.Get("Signature-Agent"), signed)
	}))
	defer site.Close()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) // yours is a secret
	agent := botauth.Options{Agent: "https://crawler.test"}
	signer, err := botauth.New(agent, botauth.Key{Private: key})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := fetch.New(fetch.Options{Reach: fetch.Loopback, Wrap: signer.RoundTripper})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseIdleConnections()
	page, err := client.Get(context.Background(), site.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(page.Body))
	// Output:
	// sig1="https://crawler.test/.well-known/http-message-signatures-directory" true
}

// The directory is served at the URL in Options.Agent, on a server with TLS.
func ExampleSigner_ServeHTTP() {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	signer, err := botauth.New(botauth.Options{Agent: "https://crawler.test"}, botauth.Key{Private: key})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+botauth.DirectoryPath, signer)
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "https://crawler.test"+botauth.DirectoryPath, nil))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Output: 200 application/http-message-signatures-directory+json
}

// A new key is in the directory a week before requests are signed with it.
func ExampleSigner_SetKeys() {
	before := botauth.Key{Private: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
	signer, err := botauth.New(botauth.Options{Agent: "https://crawler.test"}, before)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	next := botauth.Key{Private: private, From: time.Now().AddDate(0, 0, 7)}
	before.Until = next.From.AddDate(0, 0, 7)
	fmt.Println(signer.SetKeys(before, next))
	// Output:
	// <nil>
}

// Without a RoundTripper, sign each request just before it is sent.
func ExampleSigner_Sign() {
	key := botauth.Key{Private: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
	signer, err := botauth.New(botauth.Options{Agent: "https://crawler.test"}, key)
	if err != nil {
		fmt.Println(err)
		return
	}
	req, err := http.NewRequest(http.MethodGet, "https://www.example.com/", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = signer.Sign(req, time.Now())
	input := req.Header.Get("Signature-Input")
	fmt.Println(strings.Contains(input, fmt.Sprintf("keyid=%q", key.ID())), err)
	// Output: true <nil>
}
