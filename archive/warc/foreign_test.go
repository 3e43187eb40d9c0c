package warc

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// foreign opens a file written by another program.
func foreign(t *testing.T, name string) *os.File {
	t.Helper()
	root := os.Getenv("SPINNERET_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	f, err := os.Open(filepath.Join(root, "suites", "warc", name))
	if err != nil {
		t.Skipf("no data (set SPINNERET_DATA): %v", err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// The numbers of records come from zcat and grep, or from reading the file.
func TestForeignFiles(t *testing.T) {
	tests := []struct {
		name            string
		records, damage int
		at              int64
		says            string
	}{
		{"internetarchive+gowarc/good.warc.gz.open", 50, 0, 0, ""},
		{"internetarchive+gowarc/single-record.warc.gz.open", 1, 0, 0, ""},
		{"internetarchive+gowarc/empty.warc.gz.open", 0, 0, 0, ""},
		{"internetarchive+gowarc/corrupted-mid-record.warc.gz.open", 12, 1, 1219, "neither"},
		{"internetarchive+gowarc/corrupted-trailing-bytes.warc.gz.open", 30, 1, 2362, "neither"},
		{"slyrz+warc/test.warc", 10, 0, 0, ""},
		{"warcio/example.warc", 6, 0, 0, ""},
		{"warcio/example-trunc.warc", 2, 1, 1197, "digest"},
		{"warcio/example-bad.warc.gz.bad", 6, 0, 0, ""},
		{"warcio/example-digest.warc", 4, 0, 0, ""},
		{"warcio/example-iana.org-chunked.warc", 3, 0, 0, ""},
		{"warcio/example.arc", 0, 1, 0, "neither"}, // the format before WARC
		{"warcio/example.arc.gz", 0, 1, 0, "no version line"},
	}
	for _, tt := range tests {
		t.Run(filepath.Base(tt.name), func(t *testing.T) {
			f := foreign(t, tt.name)
			records, damage, err := readAll(t, NewReader(f, ReaderOptions{Verify: true}))
			require.NoError(t, err)
			require.Equal(t, tt.records, len(records))
			require.Equal(t, tt.damage, len(damage))
			for _, d := range damage {
				require.Equal(t, f.Name(), d.File)
				require.Equal(t, tt.at, d.Offset)
				require.ErrorContains(t, d, tt.says)
			}
		})
	}
}

// checker prints the offset, type, URI and hexadecimal SHA-1 of the block of each record.
const checker = `
import { WARCParser } from 'warcio';
import fs from 'fs'; import crypto from 'crypto';
const parser = new WARCParser(fs.createReadStream(process.argv[2]), {parseHttp: false});
for await (const rec of parser) {
	const sum = crypto.createHash('sha1');
	for await (const chunk of rec) sum.update(chunk);
	console.log(parser.offset, rec.warcType, rec.warcTargetURI, sum.digest('hex'));
}`

// warcio returns a directory in which node finds the module warcio.
func warcio(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts node")
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("no node")
	}
	dir := os.Getenv("SPINNERET_WARCIO")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "warcio")); dir == "" || err != nil {
		t.Skip("set SPINNERET_WARCIO to a directory after: npm install warcio")
	}
	return dir
}

// An independent reader finds the same records at the same offsets. It does not support zstd.
func TestWarcioReadsWhatIsWritten(t *testing.T) {
	dir := warcio(t)
	script := filepath.Join(dir, fmt.Sprintf("check-%d.mjs", os.Getpid()))
	require.NoError(t, os.WriteFile(script, []byte(checker), 0o644))
	t.Cleanup(func() { _ = os.Remove(script) })
	for name, o := range codings() {
		if o.Compression == Zstd {
			continue
		}
		w := write(t, o, 24)
		var want []string
		for i, e := range w.entries {
			want = append(want, fmt.Sprintf("%d %s %s %x", w.offsets[i], e.head.Type,
				e.head.TargetURI, sha1.Sum(e.block)))
		}
		file := filepath.Join(t.TempDir(), "x"+o.Compression.Extension())
		require.NoError(t, os.WriteFile(file, w.data, 0o644))
		out, err := exec.CommandContext(t.Context(), "node", script, file).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, want, strings.Split(strings.TrimSpace(string(out)), "\n"), name)
	}
}

// writer writes a WARC file with a record of each kind, and prints the type, URI and SHA-1 of the
// payload of each.
const writer = `
import { WARCRecord, WARCSerializer } from 'warcio';
import fs from 'fs'; import crypto from 'crypto';
const out = fs.openSync(process.argv[2], 'w'), gzip = process.argv[3] === 'gzip';
const date = '2026-11-03T04:05:06Z', warcVersion = process.argv[4];
async function add(options, text) {
	async function* content() { yield new TextEncoder().encode(text); }
	const record = await WARCRecord.create({date, warcVersion, ...options}, content());
	fs.writeSync(out, await WARCSerializer.serialize(record, {gzip}));
	const sum = crypto.createHash('sha1').update(text).digest('hex');
	console.log(options.type, options.url || '', sum);
}
const url = 'http://a.test/', statusline = 'HTTP/1.1 200 OK';
const info = await WARCRecord.createWARCInfo({filename: 'x', warcVersion}, {software: 'test'});
fs.writeSync(out, await WARCSerializer.serialize(info, {gzip}));
await add({type: 'response', url, statusline, httpHeaders: {'Content-Type': 'text/html'}}, 'one');
await add({type: 'request', url, statusline: 'GET / HTTP/1.1', httpHeaders: {Host: 'a.test'}}, '');
await add({type: 'response', url: url + 'long', statusline, httpHeaders: {}}, 'x'.repeat(200000));
await add({type: 'resource', url: url + 'r', warcHeaders: {'Content-Type': 'text/plain'}}, 'two');
await add({type: 'metadata', url, warcHeaders: {'Content-Type': 'application/json'}}, '{}');
`

// The files of an independent writer are read, and its digests match.
func TestFilesOfWarcio(t *testing.T) {
	dir := warcio(t)
	script := filepath.Join(dir, fmt.Sprintf("write-%d.mjs", os.Getpid()))
	require.NoError(t, os.WriteFile(script, []byte(writer), 0o644))
	t.Cleanup(func() { _ = os.Remove(script) })
	for _, compression := range []string{"gzip", "plain"} {
		for _, version := range []string{"WARC/1.0", "WARC/1.1"} {
			file := filepath.Join(t.TempDir(), "x.warc")
			out, err := exec.CommandContext(t.Context(), "node", script, file, compression,
				version).CombinedOutput()
			require.NoError(t, err, "%s", out)
			want := strings.Split(strings.TrimSpace(string(out)), "\n")
			f, err := os.Open(file)
			require.NoError(t, err)
			var got []string
			for rec, err := range NewReader(f, ReaderOptions{Verify: true}).Records() {
				require.NoError(t, err)
				require.Equal(t, version, rec.Version)
				if rec.Type() == "warcinfo" {
					continue
				}
				require.NotEmpty(t, rec.Get("WARC-Block-Digest"), "nothing would be verified")
				var body io.Reader = rec
				if strings.HasPrefix(rec.Get("Content-Type"), "application/http") {
					h, err := rec.HTTP()
					require.NoError(t, err)
					body = h.Body
				}
				text, err := io.ReadAll(body)
				require.NoError(t, err)
				got = append(got, fmt.Sprintf("%s %s %x", rec.Type(),
					rec.Fields().URI("WARC-Target-URI"), sha1.Sum(text)))
			}
			require.NoError(t, f.Close())
			require.Equal(t, want, got, compression+" "+version)
		}
	}
}

// The gzip and zstd programs decompress the members to the same text.
func TestGzipAndZstdReadOurFiles(t *testing.T) {
	plain := write(t, packing{EncoderOptions: EncoderOptions{Compression: None}}, 12).data
	for tool, o := range map[string]EncoderOptions{"gzip": {}, "zstd": {Compression: Zstd}} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("no " + tool)
		}
		cmd := exec.CommandContext(t.Context(), tool, "-dc")
		cmd.Stdin = bytes.NewReader(write(t, packing{EncoderOptions: o}, 12).data)
		out, err := cmd.Output()
		require.NoError(t, err, tool)
		require.True(t, bytes.Equal(plain, out), tool)
	}
}

// GNU Wget writes the digest of an empty block in its revisits. Other records with it are damaged.
func TestRevisitsOfWget(t *testing.T) {
	const nothing = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
	for kind, digest := range map[string]string{"revisit": nothing, "response": nothing,
		"revisit ": strings.Replace(nothing, "3I", "4I", 1)} {
		file := "WARC/1.0\r\nWARC-Type: " + kind + "\r\nWARC-Record-ID: <urn:x:1>\r\n" +
			"WARC-Date: 2026-01-02T03:04:05Z\r\nWARC-Block-Digest: " + digest +
			"\r\nContent-Length: 19\r\n\r\nHTTP/1.0 200 OK\r\n\r\n\r\n\r\n"
		rec, err := NewReader(strings.NewReader(file), ReaderOptions{Verify: true}).Next()
		require.NoError(t, err)
		block, err := io.ReadAll(rec)
		if kind == "revisit" {
			require.NoError(t, err)
			require.Equal(t, "HTTP/1.0 200 OK\r\n\r\n", string(block))
		} else {
			require.ErrorIs(t, err, ErrDamaged, kind)
		}
	}
}

// Files of GNU Wget, in WARC 1.0, are read.
func TestFilesOfWget(t *testing.T) {
	if _, err := exec.LookPath("wget"); err != nil || testing.Short() {
		t.Skip("no wget")
	}
	body := strings.Repeat("<p>some text\n", 500)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, body)
		w.(http.Flusher).Flush() // for a chunked body
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	for _, compress := range []string{"--no-warc-compression", "--warc-max-size=1G"} {
		cmd := exec.CommandContext(t.Context(), "wget", "-q", compress, "--warc-file", "x",
			"-O", "out", server.URL+"/a", server.URL+"/b")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.warc*"))
	require.NoError(t, err)
	responses := map[string]int{}
	for _, name := range names {
		f, err := os.Open(name)
		require.NoError(t, err)
		for rec, err := range NewReader(f, ReaderOptions{}).Records() {
			require.NoError(t, err)
			if rec.Type() != "response" {
				continue
			}
			h, err := rec.HTTP()
			require.NoError(t, err)
			got, err := io.ReadAll(h.Body)
			require.NoError(t, err)
			path := strings.TrimPrefix(rec.Fields().URI("WARC-Target-URI"), server.URL)
			require.Equal(t, body+path, string(got))
			require.Equal(t, 200, h.Status())
			responses[path]++
		}
		require.NoError(t, f.Close())
	}
	require.Equal(t, map[string]int{"/a": 2, "/b": 2}, responses)
}
