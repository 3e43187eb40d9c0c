package message_test

import (
	"fmt"
	"net/netip"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

func Example() {
	m := message.Message{Parcels: []message.Parcel{{
		From: message.Source{Module: message.Hosts, Part: 2}, First: 1,
		Items: []message.Item{{
			Kind: message.Page, URL: "http://example.org/", Depth: 1, Addr: netip.MustParseAddr("192.0.2.1"),
		}},
	}}}
	got, err := message.Decode(m.Append(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, it := range got.Parcels[0].Items {
		fmt.Println(it.URL, "goes to partition", message.AddrPart(it.Addr, 16), "of", message.Fetch)
	}
	// Output: http://example.org/ goes to partition 9 of fetch
}

// A partition takes each item of a source once, even if the broker repeats it.
func ExampleMarks() {
	var marks message.Marks
	for _, first := range []uint64{1, 5, 3, 3, 5} { // 5 arrives too early, and 3 twice
		p := message.Parcel{From: message.Source{Module: message.Hosts}, First: first}
		fmt.Println(first, "takes", 2-marks.Take(p, 2))
	}
	// Output:
	// 1 takes 2
	// 5 takes 0
	// 3 takes 2
	// 3 takes 0
	// 5 takes 2
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
