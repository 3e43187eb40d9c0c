//go:build !linux && !darwin

package cockpit

// FreeSpace cannot tell on this system.
func FreeSpace(string) (bytes int64, known bool) { return 0, false }
