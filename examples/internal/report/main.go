package report

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// Main runs a laboratory with the arguments of the command line, and exits with 1 if it fails. A
// request for help is not a failure.
func Main(name string, run func(args []string, out, errs io.Writer) error) {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
