//go:build linux

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// librarySize is the number of hosts, and of links per page; addrs is the number of addresses of
// the hosts.
const librarySize, addrs = 1000, 200

func addrOf(n int) string { return fmt.Sprintf("127.16.1.%d", n%addrs+1) }

func hostOf(n int) string { return fmt.Sprintf("library-%03d.test", n%librarySize) }

// A library is an infinite web. Page n links to the librarySize pages from n*librarySize+1 on, to
// which no other page links. Its methods are safe for concurrent use.
type library struct{}

// ServeHTTP answers with a page.
func (library) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.URL.Path[strings.LastIndexByte(r.URL.Path, '-')+1:])
	if r.URL.Path == "/0" {
		n, err = 0, nil
	}
	if err != nil {
		http.NotFound(w, r) // such as robots.txt
		return
	}
	_, port, _ := strings.Cut(r.Host, ":")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	var page bytes.Buffer
	for i := range librarySize {
		next := n*librarySize + 1 + i
		fmt.Fprintf(&page, "<a href=http://%s:%s/articles/%d/what-was-written-%d>", hostOf(next), port, next%97, next)
	}
	_, _ = w.Write(page.Bytes()) // the client may be gone
}
