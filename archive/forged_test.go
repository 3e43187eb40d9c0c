package archive

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// forgedURL is a page that is never fetched. Bodies of other pages contain records of it.
const forgedURL = "http://bank.test/"

// forgedRecord returns a record of a page that was never fetched, compressed like those of a file.
// An attacker knows everything but the ID of the file, and uses another one.
func forgedRecord(t testing.TB, o warc.EncoderOptions, id warc.ID) []byte {
	enc, err := warc.NewEncoder(o)
	require.NoError(t, err)
	var out bytes.Buffer
	sum := sha1.Sum([]byte("FORGED"))
	_, _, err = enc.Encode(&out, &warc.Head{Type: "response", Date: someTime, TargetURI: forgedURL,
		WarcinfoID: id, Payload: &sum, ContentType: "application/http;msgtype=response"},
		[]byte("HTTP/1.1 200 OK\r\n\r\nFORGED"))
	require.NoError(t, err)
	return out.Bytes()
}

// hostileBody returns a body full of forged records between random bytes.
func hostileBody(t testing.TB, size int, o warc.EncoderOptions, id warc.ID) []byte {
	r := rand.New(rand.NewPCG(uint64(size), 7))
	forged := forgedRecord(t, o, id)
	plain := forgedRecord(t, warc.EncoderOptions{Compression: warc.None}, id)
	var body []byte
	for len(body) < size {
		for range 10 + r.IntN(60) {
			body = append(body, byte(r.Uint32()))
		}
		body = append(append(body, forged...), "\r\n\r\n"...)
		body = append(body, plain...)
	}
	return body
}

// codings are all formats of a file.
var codings = map[string]Options{
	"gzip":                 {Level: 1},
	"stored gzip":          {Level: -1},
	"zstd":                 {Compression: warc.Zstd},
	"gzip without digests": {Level: 1, NoBlockDigest: true},
}

// hostileFile is a file that an archive wrote, with hostile pages, and the ends of its captures.
type hostileFile struct {
	name string
	data []byte
	urls []string
	ends []int64
}

func writeHostile(t testing.TB, opts Options, sizes ...int) *hostileFile {
	dir := t.TempDir()
	a := openDir(t, dir, opts)
	h := &hostileFile{}
	for i, size := range sizes {
		c := page(fmt.Sprintf("http://%d.test/", i), "")
		o := warc.EncoderOptions{Compression: opts.Compression, Level: opts.Level}
		c.Body = hostileBody(t, size, o, warc.NewID())
		loc, err := a.Append(c)
		require.NoError(t, err)
		h.name, h.urls = loc.File, append(h.urls, c.URL)
		h.ends = append(h.ends, loc.Offset+loc.Length)
	}
	require.NoError(t, a.Close())
	var err error
	h.data, err = os.ReadFile(filepath.Join(dir, h.name))
	require.NoError(t, err)
	return h
}

// recovered opens an archive with data as the file of a crashed writer, and returns the archive and
// its URLs.
func (h *hostileFile) recovered(t testing.TB, name string, data []byte) (
	a *Archive, dir string, urls []string,
) {
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	a = openDir(t, dir, Options{})
	for v, err := range a.All() {
		require.NoError(t, err)
		urls = append(urls, v.URL)
	}
	return a, dir, urls
}

// Wherever a crash cuts a file, exactly the complete captures are found, whatever the pages
// contain. The tail is cut off, and the report has its position and length.
func TestForgedRecordsAfterACut(t *testing.T) {
	for name, opts := range codings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := writeHostile(t, opts, 300, 6000, 200, 9000)
			for cut := 1; cut < len(h.data); cut += 1 + len(h.data)/97 {
				a, dir, urls := h.recovered(t, h.name+unfinished, h.data[:cut])
				whole := 0
				for whole < len(h.ends) && h.ends[whole] <= int64(cut) {
					whole++
				}
				require.ElementsMatch(t, h.urls[:whole], urls, "cut at %d", cut)
				if whole > 0 {
					end := h.ends[whole-1]
					info, err := os.Stat(filepath.Join(dir, h.name))
					require.NoError(t, err)
					require.Equal(t, end, info.Size())
					if end < int64(cut) {
						lost := int64(cut) - end
						want := Fault{File: h.name, Offset: end, Length: lost, Err: errCut}
						require.Equal(t, []Fault{want}, a.Recovered().Damage)
					}
				}
				require.NoError(t, a.Close())
			}
		})
	}
}

// After a crash within a large body, which is written without a buffer, no record in the body is
// found. It has a few forged records, and a part where a record seems to start every 16 bytes.
func TestForgedRecordsInALargeBody(t *testing.T) {
	for name, opts := range codings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forged := forgedRecord(t, warc.EncoderOptions{Compression: opts.Compression,
				Level: opts.Level}, warc.NewID())
			body := make([]byte, 8<<20)
			_, _ = rand.NewChaCha8([32]byte{}).Read(body)
			for i := range 3 {
				copy(body[(1+i)<<20:], forged)
			}
			for at := 5 << 20; at < 6<<20; at += 16 {
				copy(body[at:], "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")
			}
			dir := t.TempDir()
			a := openDir(t, dir, opts)
			first, err := a.Append(page("http://first.test/", "x"))
			require.NoError(t, err)
			c := page("http://evil.test/", "")
			c.Body = body
			_, err = a.Append(c)
			require.NoError(t, err)
			require.NoError(t, a.Close())
			data, err := os.ReadFile(filepath.Join(dir, first.File))
			require.NoError(t, err)
			h := &hostileFile{}
			a, dir, urls := h.recovered(t, first.File+unfinished, data[:7<<20])
			require.Equal(t, []string{"http://first.test/"}, urls)
			end := first.Offset + first.Length
			want := Fault{File: first.File, Offset: end, Length: 7<<20 - end, Err: errCut}
			require.Equal(t, []Fault{want}, a.Recovered().Damage)
			info, err := os.Stat(filepath.Join(dir, first.File))
			require.NoError(t, err)
			require.Equal(t, end, info.Size())
			require.NoError(t, a.Close())
		})
	}
}

// A flipped bit loses the capture that it is in, and never exposes a forged one.
func TestForgedRecordsAfterAFlippedBit(t *testing.T) {
	for name, opts := range codings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := writeHostile(t, opts, 300, 6000, 200, 3000)
			for at := 0; at < len(h.data); at += 1 + len(h.data)/211 {
				broken := bytes.Clone(h.data)
				broken[at] ^= 1 << (at % 8)
				a, dir, urls := h.recovered(t, h.name, broken)
				require.NotContains(t, urls, forgedURL, "byte %d", at)
				require.NoError(t, a.Close())
				_, err := Repair(dir, Options{})
				require.NoError(t, err)
				a = openDir(t, dir, Options{})
				_, err = a.At(forgedURL, time.Time{})
				require.ErrorIs(t, err, ErrNotFound, "byte %d", at)
				require.NoError(t, a.Close())
				hit, _ := slices.BinarySearch(h.ends, int64(at)+1)
				if start := slices.Concat([]int64{0}, h.ends)[hit]; hit > 0 && int64(at) >= start {
					kept := slices.Concat(h.urls[:hit], h.urls[hit+1:])
					require.Subset(t, urls, kept, "byte %d", at)
				}
			}
		})
	}
}

// Records in files of version 1 and of other programs have no IDs. Such files end at the first
// damage.
func TestForgedRecordsInFilesWithoutIDs(t *testing.T) {
	forged := forgedRecord(t, warc.EncoderOptions{Level: 1}, warc.ID{})
	random := make([]byte, 3000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	hostile := string(random) + string(forged) + string(random)
	path := foreignFile(t, "x.warc.gz", warc.EncoderOptions{Level: -1}, "one", hostile, "three")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	broken := bytes.Clone(data)
	broken[bytes.Index(data, random[:50])] ^= 1
	for _, name := range []string{"x.warc.gz", "x.warc.gz" + unfinished,
		"spinneret-20261103030506007-00000-1a2b3c4d.warc.gz" + unfinished} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), broken, 0o644))
		a := openDir(t, dir, Options{})
		_, err := a.At("http://foreign.test/0", time.Time{})
		require.NoError(t, err)
		_, err = a.At(forgedURL, time.Time{})
		require.ErrorIs(t, err, ErrNotFound)
		damage := a.Recovered().Damage
		require.Len(t, damage, 1)
		require.Equal(t, strings.TrimSuffix(name, unfinished), damage[0].File)
		require.EqualValues(t, len(broken), damage[0].Offset+damage[0].Length)
		require.NoError(t, a.Close())
	}
}

// For any page and any cut, exactly the complete captures are found.
func FuzzForgedRecords(f *testing.F) {
	id := warc.ID{1}
	gz := forgedRecord(f, warc.EncoderOptions{Level: 1}, id)
	f.Add(gz, uint16(200), uint8(0))
	f.Add(forgedRecord(f, warc.EncoderOptions{Compression: warc.Zstd}, id), uint16(300), uint8(2))
	f.Add(forgedRecord(f, warc.EncoderOptions{Compression: warc.None}, id), uint16(999), uint8(1))
	all := []Options{codings["gzip"], codings["stored gzip"], codings["zstd"],
		codings["gzip without digests"]}
	if zs, err := zstd.NewWriter(nil); err == nil {
		f.Add(zs.EncodeAll(gz, nil), uint16(7), uint8(3))
	}
	zipped := bytes.Buffer{}
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(gz)
	_ = w.Close()
	f.Add(zipped.Bytes(), uint16(77), uint8(1))
	encoders := make([]*encoder, len(all))
	for i, o := range all {
		s, err := o.validate()
		require.NoError(f, err)
		encoders[i] = newEncoder(s.encoder)
	}
	f.Fuzz(func(t *testing.T, body []byte, cut uint16, coding uint8) {
		o := all[int(coding)%len(all)]
		e := encoders[int(coding)%len(all)]
		name := "fuzz-20261103030506007-00000-1a2b3c4d5e6f" + o.Compression.Extension()
		data, ends := hostileData(t, e, body)
		data = data[:int(cut)%(len(data)+1)]
		found, report := readBack(t, name, data)
		want := map[string]bool{}
		for i, end := range ends {
			if end <= int64(len(data)) {
				want[fmt.Sprintf("http://%d.test/", i)] = true
			}
		}
		require.Equal(t, want, found)
		require.LessOrEqual(t, len(report.Damage), 1)
	})
}

// hostileData returns a file of three captures, and their ends.
func hostileData(t testing.TB, e *encoder, body []byte) (data []byte, ends []int64) {
	id := warc.NewID()
	copy(id[10:], "\x1a\x2b\x3c\x4d\x5e\x6f") // as in the names of the tests
	var out bytes.Buffer
	e.begin(&out)
	e.h = warc.Head{Type: "warcinfo", ID: id, Date: someTime}
	require.NoError(t, e.record([]byte("software: x\r\n")))
	for i := range 3 {
		c := page(fmt.Sprintf("http://%d.test/", i), "")
		c.Request, c.Body = body, body
		if i == 1 {
			c.Request = nil
		}
		e.sum = sha1.Sum(body)
		require.NoError(t, e.capture(&c, original{}, id, &out))
		ends = append(ends, int64(out.Len()))
	}
	return out.Bytes(), ends
}

// readBack reads a file like indexFile, without an index.
func readBack(t testing.TB, name string, data []byte) (map[string]bool, Report) {
	a := &Archive{environment: &environment{}, index: &index{}}
	r := a.readerWith(nil)
	defer r.close()
	f := bytes.NewReader(data)
	require.NoError(t, a.readTrusted(r, f, name, 0, int64(len(data))))
	found := map[string]bool{}
	tail := tail{broken: -1}
	for rec, err := range r.warc.Records() {
		if err == nil {
			var of target
			var ok bool
			if _, of, ok, err = entryOf(rec, nil); err == nil {
				err = rec.Close()
			}
			if err == nil && ok {
				tail.intact(name, rec.Offset)
				found[of.url] = true
			}
		}
		if damage, ok := err.(*warc.DamageError); ok {
			tail.damaged(damage)
		} else {
			require.NoError(t, err)
		}
	}
	tail.intact(name, int64(len(data)))
	return found, tail.Report
}

// A file of another program that claims the URL, the time and the digest of a capture does not give its body to
// the revisits of that capture.
func TestForgedOriginal(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("body ", 300)
	a := openDir(t, dir, Options{Share: true})
	for i, url := range []string{"http://a.test/", "http://a.test/", "http://b.test/"} {
		_, err := a.Append(visit{url, someTime.Add(time.Duration(i) * time.Hour), 200, text}.capture())
		require.NoError(t, err)
	}
	require.NoError(t, a.Close())
	f, err := os.Create(filepath.Join(dir, "a.warc.gz"))
	require.NoError(t, err)
	enc, err := warc.NewEncoder(warc.EncoderOptions{})
	require.NoError(t, err)
	sum := sha1.Sum([]byte(text))
	_, _, err = enc.Encode(f, &warc.Head{Type: "response", Date: someTime, TargetURI: "http://a.test/", Payload: &sum,
		ContentType: "application/http;msgtype=response"}, []byte("HTTP/1.1 200 OK\r\n\r\nFORGED"))
	require.NoError(t, err)
	require.NoError(t, f.Close())

	a = openDir(t, dir, Options{Share: true, Reindex: true})
	defer a.Close()
	for _, url := range []string{"http://a.test/", "http://b.test/"} {
		v, err := a.At(url, time.Time{})
		require.NoError(t, err)
		body, err := a.Body(v)
		require.NoError(t, err)
		require.Equal(t, text, string(body))
	}
}
