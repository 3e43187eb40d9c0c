// Package extsort sorts more byte strings than fit into memory.
//
// The rest is written to a temporary file as sorted runs, which are merged during reads. The file
// is unlinked right after its creation, where the system allows it.
package extsort
