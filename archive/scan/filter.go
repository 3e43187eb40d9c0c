package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// metaVariable is the environment variable that contains the Meta of a filter's document.
const metaVariable = "SCAN_META"

// maxMessage bounds the part of a filter's standard error that goes into an error.
const maxMessage = 1 << 10

// Filter runs an ordinary program for each document, such as wc -c. The program reads the document
// from its standard input, and its standard output is the result. The environment variable
// SCAN_META is the Meta of the document. An exit status other than 0 is a failure; its error
// includes the start of the standard error.
func Filter(name string, args ...string) Work {
	return Work{func(o Options) (worker, error) {
		path, err := exec.LookPath(name)
		if err != nil {
			return nil, err
		}
		return startFunc(o, func(ctx context.Context, doc *Document) ([]byte, error) {
			return filter(ctx, doc, o.MaxReply, path, args)
		}), nil
	}}
}

// filter runs a program on one document.
func filter(ctx context.Context, doc *Document, maxReply int, path string, args []string) (
	[]byte, error) {
	data, err := doc.Data, error(nil)
	if doc.Decode != nil {
		data, err = doc.Decode(data)
	}
	if err != nil {
		return nil, err
	}
	out, stderr := limited{most: maxReply}, limited{most: maxMessage}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out.full = stop
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(data), &out, &stderr
	if bytes.IndexByte(doc.Meta, 0) < 0 {
		cmd.Env = append(os.Environ(), metaVariable+"="+string(doc.Meta))
	}
	cmd.WaitDelay = time.Second // its children may keep its output open
	err = cmd.Run()
	switch {
	case out.cut:
		return nil, fmt.Errorf("the program wrote more than %d bytes", maxReply)
	case errors.Is(err, exec.ErrWaitDelay):
		return out.data, nil
	case err != nil && len(stderr.data) > 0:
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.data))
	}
	return out.data, err
}

// limited keeps the first bytes written to it. It is not safe for concurrent use.
type limited struct {
	data []byte
	most int
	cut  bool
	full func() // called if there are more; may be nil
}

// Write never fails: output beyond the limit must not kill the program.
func (l *limited) Write(p []byte) (int, error) {
	keep := min(len(p), l.most-len(l.data))
	l.data = append(l.data, p[:keep]...)
	if keep < len(p) {
		l.cut = true
		if l.full != nil {
			l.full()
		}
	}
	return len(p), nil
}
