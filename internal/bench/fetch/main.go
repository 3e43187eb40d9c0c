// Command fetch compares package fetch with the packages that it builds on, and with its
// alternatives.
//
//	go run ./fetch get      pages over loopback: CPU and pages per second
//	go run ./fetch links    links of generated pages: MB per CPU second, and allocations
//
// Each round runs every engine, one after the other, so that all of them see the same noise. The
// tables show the medians of the rounds, and the ratio to the reference engine.
package main

import (
	"flag"
	"fmt"
	"os"
)

// serverArg makes the program the server for get. It is a separate process, so that its
// CPU time does not count as the client's.
const serverArg = "serve"

func main() {
	rounds := flag.Int("rounds", 5, "`number` of rounds; the table has the medians")
	pages := flag.Int("pages", 20_000, "get: pages per engine and round")
	conns := flag.Int("conns", 200, "get: connections")
	size := flag.Int("size", 20<<10, "get: bytes of a page")
	flag.Parse()
	var err error
	switch flag.Arg(0) {
	case serverArg:
		err = serve(*size)
	case "get":
		err = get(*rounds, *pages, *conns, *size)
	case "links":
		err = links(*rounds)
	default:
		err = fmt.Errorf("unknown measurement %q: want get or links", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}
