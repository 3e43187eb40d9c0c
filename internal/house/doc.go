// Package house enforces the rules of this library with tests, so that they depend neither on an
// extra tool nor on a reviewer's memory.
//
// A rule is a function from parsed source to findings. Each runs twice: on the module, where it
// must find nothing, and on a planted violation, which it must find.
package house
