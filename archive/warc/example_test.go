package warc_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/archive/warc"
)

func Example() {
	var file bytes.Buffer
	enc, err := warc.NewEncoder(warc.EncoderOptions{})
	if err != nil {
		panic(err)
	}
	info := warc.Head{Type: "warcinfo", Date: time.Unix(0, 0), ID: warc.NewID()}
	_, start, err := enc.Encode(&file, &info)
	for _, text := range []string{"one", "two"} {
		head := warc.Head{Type: "resource", Date: time.Unix(0, 0), ContentType: "text/plain",
			TargetURI: "file:///" + text, WarcinfoID: info.ID}
		_, _, err = enc.Encode(&file, &head, []byte(text))
	}
	file.Bytes()[start+20] ^= 1 // the disk has aged

	r := warc.NewReader(bytes.NewReader(file.Bytes()), warc.ReaderOptions{Verify: true})
	defer r.Close()
	for rec, err := range r.Records() {
		if errors.Is(err, warc.ErrDamaged) {
			fmt.Println("damaged")
			continue
		}
		text, err := io.ReadAll(rec)
		fmt.Println(rec.Type(), rec.Get("WARC-Target-URI"), string(text), err)
	}
	fmt.Println(err)
	// Output:
	// warcinfo   <nil>
	// damaged
	// resource file:///two two <nil>
	// <nil>
}

// A record can be read by its offset and length alone.
func ExampleReader_ResetAt() {
	var file bytes.Buffer
	enc, _ := warc.NewEncoder(warc.EncoderOptions{Compression: warc.Zstd})
	var offset, length int64
	for _, text := range []string{"one", "two", "three"} {
		offset = int64(file.Len())
		head := warc.Head{Type: "metadata", Date: time.Unix(0, 0)}
		_, length, _ = enc.Encode(&file, &head, []byte(text))
	}
	r := warc.NewReader(nil, warc.ReaderOptions{})
	defer r.Close()
	r.ResetAt(bytes.NewReader(file.Bytes()), offset, length)
	rec, _ := r.Next()
	text, err := io.ReadAll(rec)
	fmt.Println(string(text), err)
	// Output: three <nil>
}

// WARC 1.1 can say how a response came, in fields that may occur several times.
func ExampleRecord_Protocol() {
	const file = "WARC/1.1\r\n" +
		"WARC-Type: response\r\n" +
		"WARC-Protocol: h2\r\n" +
		"WARC-Protocol: tls/1.3\r\n" +
		"WARC-Cipher-Suite: TLS_AES_128_GCM_SHA256\r\n" +
		"Content-Length: 0\r\n\r\n\r\n\r\n"
	r := warc.NewReader(strings.NewReader(file), warc.ReaderOptions{})
	defer r.Close()
	rec, err := r.Next()
	if err != nil {
		panic(err)
	}
	fmt.Println(rec.Fields().Values("WARC-Protocol"))
	fmt.Println(rec.Protocol())
	// Output:
	// [h2 tls/1.3]
	// HTTP/2.0
}
