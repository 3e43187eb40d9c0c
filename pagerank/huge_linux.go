package pagerank

import (
	"syscall"
	"unsafe"
)

// hugePage is what a page has where the kernel is asked for big ones.
const hugePage = 2 << 20

// leastHuge is from how many bytes on big pages are asked for. The processor finds its way in less
// without them.
const leastHuge = 8 * hugePage

// adviseHuge asks for big pages for n bytes that were just allocated and are not written yet: links
// lead anywhere, and with small pages the way to the memory takes as long as the memory. Only what
// fills big pages is asked for. If the kernel does not want to, all is well too.
func adviseHuge(memory unsafe.Pointer, n uintptr) {
	if n < leastHuge {
		return
	}
	begin := uintptr(memory)
	first := (begin + hugePage - 1) &^ (hugePage - 1)
	if last := (begin + n) &^ (hugePage - 1); first < last {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, first, last-first, syscall.MADV_HUGEPAGE)
	}
}
