//go:build !unix || solaris || aix || illumos

package cockpit

import "os"

// terminalWidth returns 0: the width is not known.
func terminalWidth(*os.File) int { return 0 }
