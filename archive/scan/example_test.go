package scan_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/archive/scan"
)

func Example() {
	documents := func(yield func(scan.Document, error) bool) {
		for _, text := range []string{"good", "poison", "better"} {
			if !yield(scan.Document{Data: []byte(text)}, nil) {
				return
			}
		}
	}
	upper := scan.Func(func(doc *scan.Document) ([]byte, error) {
		if string(doc.Data) == "poison" {
			panic("poisoned")
		}
		return bytes.ToUpper(doc.Data), nil
	})
	o := scan.Options{Ordered: true}
	for result, err := range scan.Run(context.Background(), documents, upper, o) {
		skipped := errors.Is(result.Err, scan.ErrSkipped)
		fmt.Println(result.Number, string(result.Out), skipped, err)
	}
	// Output:
	// 0 GOOD false <nil>
	// 1  true <nil>
	// 2 BETTER false <nil>
}
