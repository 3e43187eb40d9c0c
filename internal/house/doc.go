// Package house has the rules of this library as tests, so that they need no extra tool and no
// reviewer who remembers them.
//
// A rule is a function from parsed source to findings. Each runs twice: on the module, where it
// must find nothing, and on a planted violation, which it must find.
package house
