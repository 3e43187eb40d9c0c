package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
)

// A record is a record of a WARC file.
type record struct {
	kind, url string
	block     []byte
}

// readArchive reads all records of all files in a directory. It fails at an incomplete one.
func readArchive(t *testing.T, dir string) (records []record) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.warc.gz*"))
	require.NoError(t, err)
	for _, name := range names {
		require.True(t, strings.HasSuffix(name, ".warc.gz"), "%s is not finished", name)
		f, err := os.Open(name)
		require.NoError(t, err)
		defer f.Close()
		plain, err := gzip.NewReader(f)
		require.NoError(t, err, name)
		r := bufio.NewReader(plain)
		for {
			rec, ok := readRecord(t, r)
			if !ok {
				break
			}
			records = append(records, rec)
		}
	}
	return records
}

func readRecord(t *testing.T, r *bufio.Reader) (record, bool) {
	t.Helper()
	lines := textproto.NewReader(r)
	version, err := lines.ReadLine()
	if err == io.EOF {
		return record{}, false
	}
	require.NoError(t, err)
	require.Equal(t, "WARC/1.1", version)
	fields, err := lines.ReadMIMEHeader()
	require.NoError(t, err)
	size, err := strconv.Atoi(fields.Get("Content-Length"))
	require.NoError(t, err)
	block := make([]byte, size+4)
	_, err = io.ReadFull(r, block)
	require.NoError(t, err)
	require.Equal(t, "\r\n\r\n", string(block[size:]))
	return record{fields.Get("Warc-Type"), fields.Get("Warc-Target-Uri"), block[:size]}, true
}

// page returns the decoded body of a response record.
func (rec record) page(t *testing.T) string {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(rec.block)), nil)
	require.NoError(t, err)
	return decoded(t, resp)
}

// served fetches the page again.
func served(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	resp, err := client.Get(url)
	require.NoError(t, err)
	return decoded(t, resp)
}

func decoded(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if resp.Header.Get("Content-Encoding") != "gzip" {
		return string(body)
	}
	plain, err := gzip.NewReader(bytes.NewReader(body))
	require.NoError(t, err)
	page, err := io.ReadAll(plain)
	require.NoError(t, err)
	return string(page)
}
