package hostcache

import (
	"syscall"
	"unsafe"
)

// hugePage is what a page has where the kernel is asked for big ones.
const hugePage = 2 << 20

// adviseHuge asks for big pages for a chunk. With small ones, whoever looks for something among
// hundreds of megabytes waits for the page tables as long as for the memory itself. A big page that
// the chunk shares with the one before it, which ends at the address end, is asked for as well.
// It returns the address at which the chunk ends. If the kernel does not want to, all is well too.
func adviseHuge(chunk []byte, end uintptr) uintptr {
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(chunk)))
	first := (begin + hugePage - 1) &^ (hugePage - 1)
	if begin == end {
		first = begin &^ (hugePage - 1)
	}
	end = begin + uintptr(len(chunk))
	if last := end &^ (hugePage - 1); first < last {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, first, last-first, syscall.MADV_HUGEPAGE)
	}
	return end
}
