package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// levels encodes pages as records with each level of each compression, and prints the resulting
// sizes.
func levels(o options) error {
	bodies, err := realPages(o.site, o.pages)
	if err != nil {
		return err
	}
	var all contest
	for _, c := range compressions {
		last := 9
		if c.Compression == warc.Zstd {
			last = 4
		}
		for level := 1; level <= last; level++ {
			encode, err := encoder(warc.EncoderOptions{Compression: c.Compression, Level: level}, bodies)
			if err != nil {
				return err
			}
			total, packed, err := encode()
			if err != nil {
				return err
			}
			all = append(all, subject{
				name: fmt.Sprintf("%s %d, %.3f of the bytes", c.name, level, float64(packed)/float64(total)),
				run:  func() (int64, error) { n, _, err := encode(); return n, err },
			})
		}
	}
	return all.compare("levels", o.rounds)
}

// encoder returns a function that encodes all bodies, each as its own member.
func encoder(o warc.EncoderOptions, bodies [][]byte) (encode func() (total, packed int64, err error), err error) {
	enc, err := warc.NewEncoder(o)
	if err != nil {
		return nil, err
	}
	head := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nServer: nginx\r\n\r\n")
	return func() (total, packed int64, err error) {
		for _, body := range bodies {
			h := warc.Head{Type: "response", Date: time.Unix(1.8e9, 0), TargetURI: "http://a.example/page.html",
				ContentType: "application/http;msgtype=response"}
			raw, n, err := enc.Encode(io.Discard, &h, head, body)
			if err != nil {
				return 0, 0, err
			}
			total, packed = total+raw, packed+n
		}
		return total, packed, nil
	}, nil
}

// realPages returns some of the HTML pages below a directory, spread evenly.
func realPages(dir string, n int) (bodies [][]byte, err error) {
	var names []string
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(name, ".html") {
			names = append(names, name)
		}
		return err
	})
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("levels: no pages in %q: give a directory of them with -site: %w", dir, err)
	}
	step := max(len(names)/max(n, 1), 1)
	for i := 0; i < len(names); i += step {
		body, err := os.ReadFile(names[i])
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, body)
	}
	return bodies, nil
}
