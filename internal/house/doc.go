// Package house holds the rules of this library as tests, so that they need no tool to be
// installed and no reviewer to remember them.
//
// A rule is a function from parsed source to findings. Each is run twice: over the module, where
// it must find nothing, and over a planted breach, where it must find it.
package house
