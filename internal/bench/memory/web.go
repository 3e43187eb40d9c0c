//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
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

// bodySize is the uncompressed size of each page of a shelf: nearly the crawler's limit.
const bodySize = 10_000_000

// A shelf is a web with one large page on each host, and a first page that links to them. Its
// methods are safe for concurrent use.
type shelf struct {
	page   []byte // compressed
	bodies int
	asked  atomic.Int64  // requests for large pages
	all    chan struct{} // closed when all have been requested
}

func newShelf(bodies int) *shelf {
	var packed bytes.Buffer
	w, text := gzip.NewWriter(&packed), 0
	for n := 0; text < bodySize; n++ {
		k, _ := fmt.Fprintf(w, "<p>%d is %x to the power of %d. <a href=#%d>%d</a>", n*n, n*7919, n%13, n, n)
		text += k
	}
	_ = w.Close() // into memory
	return &shelf{page: packed.Bytes(), bodies: bodies, all: make(chan struct{})}
}

// ServeHTTP sends the large pages once all of them have been requested.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, port, _ := strings.Cut(r.Host, ":")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	switch r.URL.Path {
	case "/0":
		for n := range s.bodies {
			fmt.Fprintf(w, "<a href=http://%s:%s/large>", hostOf(n), port)
		}
	case "/large":
		if s.asked.Add(1) == int64(s.bodies) {
			close(s.all)
		}
		<-s.all
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(s.page) // the client may be gone
	default:
		http.NotFound(w, r)
	}
}
