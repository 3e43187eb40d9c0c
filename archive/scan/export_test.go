package scan

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
)

// Worker is exported for tests that wrap it.
type Worker = worker

// WorkOf returns a Work with the workers of a test.
func WorkOf(start func(Options) (Worker, error)) Work { return Work{start} }

// Start starts a worker.
func (w Work) Start(o Options) (Worker, error) { return w.start(o) }

// Process is like Command, for tests that set more than arguments.
func Process(command func() *exec.Cmd) Work {
	return Work{func(o Options) (worker, error) { return startChild(o, command()) }}
}

// Serve is the child's side of the protocol, for tests. It calls work with each document from r, until the end
// of r, and writes the replies to w. The slices are only valid until work returns. If w is the
// standard output, the program must not print anything else there.
func Serve(r io.Reader, w io.Writer, work func(meta, data []byte) ([]byte, error)) error {
	in, out := bufio.NewReader(r), bufio.NewWriter(w)
	var meta, data bytes.Buffer
	for {
		line, err := readLine(in)
		if err == io.EOF {
			return nil
		}
		var id, metaSize, dataSize int64
		if err == nil {
			_, err = fmt.Sscanf(line, "DOC %d %d %d", &id, &metaSize, &dataSize)
		}
		if err == nil && (metaSize < 0 || dataSize < 0) {
			err = errors.New("negative length")
		}
		meta.Reset()
		data.Reset()
		if err == nil {
			_, err = io.CopyN(&meta, in, metaSize)
		}
		if err == nil {
			_, err = io.CopyN(&data, in, dataSize)
		}
		if err != nil {
			return fmt.Errorf("scan: serve: read document: %w", err)
		}
		word, reply := "OK", []byte(nil)
		if reply, err = work(meta.Bytes(), data.Bytes()); err != nil {
			word, reply = "FAIL", []byte(err.Error())
		}
		_, _ = fmt.Fprintf(out, "%s %d %d\n", word, id, len(reply)) // Flush returns the error
		_, _ = out.Write(reply)
		if err := out.Flush(); err != nil {
			return fmt.Errorf("scan: serve: write reply: %w", err)
		}
	}
}
