package neterr

import "syscall"

// The numbers come from winsock2.h and winerror.h. The constants of package syscall are included
// because tests and in-memory networks use them.
var (
	exhausted = []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.Errno(4),     // ERROR_TOO_MANY_OPEN_FILES
		syscall.Errno(8),     // ERROR_NOT_ENOUGH_MEMORY, and WSA_NOT_ENOUGH_MEMORY
		syscall.Errno(10024), // WSAEMFILE
		syscall.Errno(10055), // WSAENOBUFS
		syscall.Errno(10067), // WSAEPROCLIM
	}
	unconnected = []error{
		syscall.EADDRNOTAVAIL, syscall.ENETDOWN, syscall.ENETUNREACH,
		syscall.Errno(10049), // WSAEADDRNOTAVAIL
		syscall.Errno(10050), // WSAENETDOWN
		syscall.Errno(10051), // WSAENETUNREACH
		syscall.Errno(1231),  // ERROR_NETWORK_UNREACHABLE, as connectex reports it
	}
	refused = []error{
		syscall.ECONNREFUSED,
		syscall.Errno(10061), // WSAECONNREFUSED
		syscall.Errno(1225),  // ERROR_CONNECTION_REFUSED, as connectex reports it
	}
	reset = []error{
		syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE,
		syscall.WSAECONNRESET, syscall.WSAECONNABORTED,
		syscall.Errno(64), // ERROR_NETNAME_DELETED, as WSARecv reports it
	}
)
