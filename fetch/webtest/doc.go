// Package webtest serves a deterministic virtual web on loopback, for tests, benchmarks and demos.
//
// A [Web] has many hosts on many addresses of 127.0.0.0/8 and any number of pages, all computed
// from a seed when they are asked for. The same Options give the same bytes on every machine:
//
//	web, err := webtest.Start(webtest.Options{Seed: 1, Hosts: 100, Pages: 50})
//	defer web.Close()
//	resp, err := web.Client().Get("http://h00000.vweb.test/")
//	...
//	for _, v := range web.Early(time.Second) { // requests less than a second apart
//		t.Error(v)
//	}
//
// What a host does wrong is its [Traits]; the table of hostile paths is at [Trap]. The page
// docs/polite.md of the repository shows how to judge a crawler by it.
//
// # Promise
//
// Every page of a host can be reached from its "/" by links alone, and every host from the first
// host's "/". [Web.Reachable] is the set of pages that a crawler which obeys robots.txt must get,
// no more and no less, besides traps. Every request is in [Web.Log] from the moment it arrives.
// Nothing of a web outlives [Web.Close].
//
// # Addresses
//
// URLs carry no port: each host has a virtual address, and [Web.Dial] knows the real listener
// behind it. Where the system has all of 127.0.0.0/8, the listener sits on that very address on
// some free port; elsewhere each address becomes a port of 127.0.0.1. With Options.Port the web is
// really there, so that foreign programs find it. It also answers as an HTTP proxy. With
// Options.Network there are no sockets at all, so that a testing/synctest bubble can hold the web
// and the crawler.
//
// # What it does not do
//
// It does not speak the DNS protocol: names resolve through [Web.Resolve] or a hosts file.
package webtest
