package charset_test

import (
	"fmt"

	"github.com/spinneret-go/spinneret/fetch/charset"
)

func Example() {
	page := []byte("caf\xe9")
	text, name, err := charset.ToUTF8(page, "text/html; charset=iso-8859-1")
	fmt.Println(string(text), name, err)
	// Output:
	// café windows-1252 <nil>
}
