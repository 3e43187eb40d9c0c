package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// stored is a record as read by the reader of these tests. It shares no code with the writer: it
// uses the gzip of the standard library, its own header parser, and computes all digests.
type stored struct {
	offset, length int64 // of the gzip member
	names          []string
	fields         map[string]string
	block          []byte
}

func (s *stored) kind() string { return s.fields["WARC-Type"] }

// readers avoids an allocation of 32 KiB in each of thousands of short tests.
var readers = sync.Pool{New: func() any { return new(gzip.Reader) }}

// readFile returns the records up to the first fault, and that fault.
func readFile(data []byte) ([]stored, error) {
	var records []stored
	src := bytes.NewReader(data) // an io.ByteReader, so that gzip reads no byte too many
	gz := readers.Get().(*gzip.Reader)
	defer readers.Put(gz)
	for src.Len() > 0 {
		offset := int64(len(data) - src.Len())
		record, err := readMember(gz, src)
		if err != nil {
			return records, fmt.Errorf("member at %d: %w", offset, err)
		}
		record.offset = offset
		record.length = int64(len(data)-src.Len()) - offset
		records = append(records, record)
	}
	return records, nil
}

func readMember(gz *gzip.Reader, src *bytes.Reader) (stored, error) {
	if err := gz.Reset(src); err != nil {
		return stored{}, err
	}
	gz.Multistream(false)
	if !gz.ModTime.IsZero() {
		return stored{}, fmt.Errorf("member has the time %v", gz.ModTime)
	}
	plain, err := io.ReadAll(gz)
	if err != nil {
		return stored{}, err
	}
	return readRecord(plain)
}

// readRecord is strict: CRLF everywhere, no fold, no field twice, nothing after the record.
func readRecord(plain []byte) (stored, error) {
	s := stored{fields: map[string]string{}}
	head, rest, found := bytes.Cut(plain, []byte("\r\n\r\n"))
	if !found {
		return s, errors.New("no end of header")
	}
	lines := strings.Split(string(head), "\r\n")
	if lines[0] != "WARC/1.1" {
		return s, fmt.Errorf("version %q", lines[0])
	}
	for _, line := range lines[1:] {
		name, value, found := strings.Cut(line, ": ")
		_, twice := s.fields[name]
		if !found || twice || strings.ContainsAny(line, "\r\n") {
			return s, fmt.Errorf("field %q", line)
		}
		s.names = append(s.names, name)
		s.fields[name] = value
	}
	length, err := strconv.Atoi(s.fields["Content-Length"])
	if err != nil || length != len(rest)-4 || string(rest[length:]) != "\r\n\r\n" {
		return s, fmt.Errorf("Content-Length %d of %d: %w", length, len(rest), err)
	}
	s.block = rest[:length]
	if want := sha1Of(s.block); s.fields["WARC-Block-Digest"] != want {
		return s, fmt.Errorf("digest of block is %s: %v", want, s.fields)
	}
	return s, nil
}

func sha1Of(p []byte) string {
	sum := sha1.Sum(p)
	return "sha1:" + base32.StdEncoding.EncodeToString(sum[:])
}

// readCaptures returns the responses of a file, including revisits. It is an error if a request is
// not right before its response, or if they do not refer to each other.
func readCaptures(data []byte) ([]stored, error) {
	records, fault := readFile(data)
	var responses []stored
	var request *stored
	for i, record := range records {
		switch {
		case i == 0 != (record.kind() == "warcinfo"):
			return nil, fmt.Errorf("record %d is a %s", i, record.kind())
		case record.kind() == "request":
			if request != nil {
				return nil, fmt.Errorf("record %d: two requests in a row", i)
			}
			request = &records[i]
		case record.kind() == "response" || record.kind() == "revisit":
			if err := samePair(request, &record); err != nil {
				return nil, fmt.Errorf("record %d: %w", i, err)
			}
			request = nil
			responses = append(responses, record)
		}
	}
	if request != nil && fault == nil {
		fault = errors.New("request without a response at the end")
	}
	return responses, fault
}

func samePair(request, response *stored) error {
	if request == nil {
		if other := response.fields["WARC-Concurrent-To"]; other != "" {
			return fmt.Errorf("no request before the response: %s", other)
		}
		return nil
	}
	for _, name := range []string{"WARC-Target-URI", "WARC-Date", "WARC-IP-Address"} {
		if request.fields[name] != response.fields[name] {
			return fmt.Errorf("%s differs", name)
		}
	}
	if request.fields["WARC-Concurrent-To"] != response.fields["WARC-Record-ID"] ||
		response.fields["WARC-Concurrent-To"] != request.fields["WARC-Record-ID"] {
		return errors.New("request and response do not refer to each other")
	}
	return nil
}

// unchunk decodes a chunked body.
func unchunk(body []byte) ([]byte, error) {
	var out []byte
	r := bufio.NewReader(bytes.NewReader(body))
	for {
		var size int
		if _, err := fmt.Fscanf(r, "%x\r\n", &size); err != nil {
			return out, err
		}
		chunk := make([]byte, size+2)
		if _, err := io.ReadFull(r, chunk); err != nil {
			return out, err
		}
		if string(chunk[size:]) != "\r\n" {
			return out, errors.New("no CRLF after a chunk")
		}
		if size == 0 {
			_, err := r.ReadByte()
			if err != io.EOF {
				return out, errors.New("bytes after the last chunk")
			}
			return out, nil
		}
		out = append(out, chunk[:size]...)
	}
}
