// Package extsort sorts more byte strings than fit into memory.
//
// What does not fit is written to a temporary file as sorted runs, which are merged when they are
// read. The file is unlinked as soon as it is made, where the system allows that.
package extsort
