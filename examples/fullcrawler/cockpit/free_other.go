//go:build !linux && !darwin

package cockpit

// FreeSpace always returns false on this system.
func FreeSpace(string) (bytes int64, known bool) { return 0, false }
