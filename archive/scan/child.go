package scan

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Command starts child processes that speak the protocol of the package comment. Their standard
// error is that of this process.
func Command(name string, args ...string) Work {
	return Work{func(o Options) (worker, error) {
		cmd := exec.Command(name, args...)
		cmd.Stderr = os.Stderr
		return startChild(o, cmd)
	}}
}

// startChild starts a worker in a process.
func startChild(o Options, cmd *exec.Cmd) (worker, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	return &child{cmd: cmd, in: in, out: out, w: bufio.NewWriter(in), r: bufio.NewReader(out),
		maxReply: o.MaxReply}, nil
}

// child is a process. Its methods are safe as [worker] requires.
type child struct {
	cmd      *exec.Cmd
	in, out  io.Closer
	w        *bufio.Writer
	r        *bufio.Reader
	maxReply int
}

// Send writes the document into the pipe.
func (c *child) Send(number int64, doc *Document) error {
	return writeDocument(c.w, number, doc.Meta, doc.Data)
}

// Finish closes the pipe.
func (c *child) Finish() error { return c.in.Close() }

// Receive reads a reply from the pipe.
func (c *child) Receive(number int64) ([]byte, error) { return readReply(c.r, number, c.maxReply) }

// Kill kills the process. Its children may survive and keep the pipes open, but pending calls of
// Send and Receive fail anyway.
func (c *child) Kill() {
	_ = c.cmd.Process.Kill()
	_ = c.in.Close()
	_ = c.out.Close()
}

// Wait waits for the process and closes the pipes.
func (c *child) Wait() error { return c.cmd.Wait() }

// writeDocument writes a document and flushes the buffer, so that the child can start before the
// next document arrives.
func writeDocument(w *bufio.Writer, number int64, meta, data []byte) error {
	_, _ = fmt.Fprintf(w, "DOC %d %d %d\n", number, len(meta), len(data)) // Flush returns the error
	_, _ = w.Write(meta)
	_, _ = w.Write(data)
	return w.Flush()
}

// maxLine bounds the first line of a document or a reply.
const maxLine = 128

// readLine reads a line of words and numbers.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for len(line) < maxLine {
		b, err := r.ReadByte()
		if err == io.EOF && len(line) > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return "", err
		}
		if b == '\n' {
			return string(line), nil
		}
		line = append(line, b)
	}
	return "", fmt.Errorf("invalid line: %.60q", line)
}

// readReply reads a reply and validates all of it: the child may be broken, or print unrelated
// output.
func readReply(r *bufio.Reader, number int64, maxReply int) ([]byte, error) {
	line, err := readLine(r)
	if err == io.EOF {
		return nil, errors.New("the worker exited")
	}
	if err != nil {
		return nil, err
	}
	var word string
	var id int64
	var size int
	if n, err := fmt.Sscanf(line, "%s %d %d", &word, &id, &size); n != 3 || err != nil ||
		line != fmt.Sprintf("%s %d %d", word, id, size) || word != "OK" && word != "FAIL" {
		return nil, fmt.Errorf("invalid reply: %.60q", line)
	}
	if id != number {
		return nil, fmt.Errorf("reply to document %d instead of %d", id, number)
	}
	if size < 0 || size > maxReply {
		return nil, fmt.Errorf("reply of %d bytes exceeds the limit of %d", size, maxReply)
	}
	var reply bytes.Buffer // grows with the bytes received, not the announced size
	if _, err := io.CopyN(&reply, r, int64(size)); err != nil {
		return nil, fmt.Errorf("the worker exited in the middle of a reply: %w", err)
	}
	if word == "FAIL" {
		return nil, fmt.Errorf("%w: %s", ErrFailed, reply.Bytes())
	}
	return reply.Bytes(), nil
}
