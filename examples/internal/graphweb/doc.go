// Package graphweb serves the link graph of a real web on loopback.
package graphweb
