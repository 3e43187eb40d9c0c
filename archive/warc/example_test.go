package warc_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// Offset and length are all that is needed to read one record of a file.
func ExampleReader_ResetAt() {
	var file bytes.Buffer
	enc, _ := warc.NewEncoder(warc.EncoderOptions{Compression: warc.Zstd})
	var offset, length int64
	for _, text := range []string{"one", "two", "three"} {
		offset = int64(file.Len())
		_, length, _ = enc.Encode(&file, &warc.Head{Type: "metadata", Date: time.Unix(0, 0)}, []byte(text))
	}
	r := warc.NewReader(nil, warc.ReaderOptions{})
	defer r.Close()
	r.ResetAt(bytes.NewReader(file.Bytes()), offset, length)
	rec, _ := r.Next()
	text, err := io.ReadAll(rec)
	fmt.Println(string(text), err)
	// Output: three <nil>
}
