//go:build !linux && !darwin

package cockpit

// FreeSpace cannot tell.
func FreeSpace(string) (bytes int64, known bool) { return 0, false }
