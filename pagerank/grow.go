package pagerank

import "unsafe"

// grown returns s with room for n elements in all. It differs from append in that big pages are
// asked for before the new memory is first written to, which is when the kernel decides.
// What lies beyond the length is zero, as long as nobody shortens s.
func grown[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s
	}
	big := make([]T, len(s), max(n, cap(s)+cap(s)/4+16))
	var t T
	adviseHuge(unsafe.Pointer(unsafe.SliceData(big)), uintptr(cap(big))*unsafe.Sizeof(t))
	copy(big, s)
	return big
}

// lengthened returns s with at least n elements; new ones are zero.
func lengthened[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	return grown(s, n)[:n]
}
