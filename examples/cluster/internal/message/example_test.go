package message_test

import (
	"fmt"
	"net/netip"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

func Example() {
	m := message.Message{
		From: message.Source{Module: message.Hosts, Part: 2}, Number: 1, Base: 1,
		Items: []message.Item{{
			Kind: message.Page, URL: "http://example.org/", Depth: 1, Addr: netip.MustParseAddr("192.0.2.1"),
		}},
	}
	got, err := message.Decode(m.Append(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, it := range got.Items {
		fmt.Println(it.URL, "goes to partition", message.AddrPart(it.Addr, 16), "of", message.Fetch)
	}
	// Output: http://example.org/ goes to partition 9 of fetch
}

// A partition takes each message of a source once, even if the broker repeats it.
func ExampleMarks() {
	var marks message.Marks
	for _, number := range []uint64{1, 3, 2, 2, 3} { // 3 arrives too early, and 2 twice
		m := message.Message{Number: number, Base: 1}
		fmt.Println(number, marks.Take(&m))
	}
	// Output:
	// 1 true
	// 3 false
	// 2 true
	// 2 false
	// 3 true
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
