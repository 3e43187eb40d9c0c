// Package webtest serves a deterministic virtual web on loopback, for tests, benchmarks and demos.
//
// A [Web] has many hosts on many addresses of 127.0.0.0/8 and any number of pages, all computed on
// demand from a seed. The same Options give the same bytes on every machine:
//
//	web, err := webtest.Start(webtest.Options{Seed: 1, Hosts: 100, Pages: 50})
//	defer web.Close()
//	resp, err := web.Client().Get("http://h00000.vweb.test/")
//	...
//	for _, v := range web.Early(time.Second) { // requests less than a second apart
//		t.Error(v)
//	}
//
// [Traits] says how a host misbehaves, and [Trap] has a table of hostile paths. The page
// docs/polite.md of the repository shows how to test a crawler.
//
// # Promise
//
// Every page of a host can be reached from its "/" by links alone, and every host from the first
// host's "/". [Web.Reachable] returns exactly the pages that a crawler must fetch if it obeys
// robots.txt, apart from traps. [Web.Log] has every request that net/http understands from the
// moment it arrives: those that it refuses, such as one for /100%, are not there, and one that is sent
// before the answer to another on the same HTTP/1.1 connection arrives with that answer. After
// [Web.Close], nothing of a web keeps running.
//
// # Addresses
//
// URLs have no port. Each host has a virtual address, and [Web.Dial] knows the listener behind it.
// On systems with all of 127.0.0.0/8, the listener has that address and a free port; elsewhere each
// address becomes a port of 127.0.0.1. Other programs reach the web through [Web.Proxy], or with
// Options.Port at its addresses, which [Web.Resolver] and a hosts file know. With Options.Network
// there are no sockets, so a testing/synctest bubble can contain the web and the crawler.
package webtest
