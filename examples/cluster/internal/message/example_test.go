package message_test

import (
	"fmt"
	"net/netip"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

func Example() {
	data := message.Encode(nil, message.Item{
		Kind: message.Page, URL: "http://example.org/", Depth: 1, Addr: netip.MustParseAddr("192.0.2.1"),
	})
	items, err := message.Decode(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, it := range items {
		fmt.Println(it.URL, "goes to", message.Dest{To: message.Fetch, Part: message.AddrPart(it.Addr, 16)})
	}
	// Output: http://example.org/ goes to fetch.9
}

// Partitions are equal parts of the range of a hash that never changes.
func ExamplePart() {
	for _, url := range []string{"http://example.org/", "http://example.org/a", "http://example.org/b"} {
		fmt.Println(message.Part(url, 16))
	}
	// Output:
	// 8
	// 14
	// 5
}
