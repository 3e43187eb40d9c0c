package cockpit

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version says which program this is, and how it was built.
func Version() string {
	return fmt.Sprintf("%s (%s, %s/%s)", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// buildVersion returns the version of the module, or the revision of the source.
func buildVersion() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(len(s.Value), 12)]
		}
	}
	return "devel"
}
