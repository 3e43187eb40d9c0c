package warc

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The same file in both versions.
const (
	arcPage = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>old"
	arcOne  = "filedesc://old.arc 0.0.0.0 19970203040506 text/plain 75\n" +
		"1 0 Alexa Internet\nURL IP-address Archive-date Content-type Archive-length\n" +
		"\nhttp://a.test/ b 192.0.2.1 19970203040506 text/html 50\n" + arcPage +
		"\ndns:a.test 192.0.2.53 199702030405 text/dns 5\na 1.2"
	arcTwo = "filedesc://old.arc 0.0.0.0 19970203040506 text/plain 200 - - 0 old.arc 9\n2 0 Alexa" +
		"\nhttp://a.test/ b 192.0.2.1 19970203040506 text/html 200 x http://to.test/ 80 " +
		"old.arc 50\n" + arcPage +
		"\ndns:a.test 192.0.2.53 199702030405 text/dns 200 - - 200 old.arc 5\na 1.2\n"
)

// members compresses each record of a file into a separate member.
func members(t *testing.T, file string) string {
	var out bytes.Buffer
	for at := 0; at < len(file); {
		end := len(file)
		for _, next := range []string{"\nhttp:", "\ndns:"} {
			if i := strings.Index(file[at:], next); i > 0 && at+i+1 < end {
				end = at + i + 1
			}
		}
		z := gzip.NewWriter(&out)
		_, err := z.Write([]byte(file[at:end]))
		require.NoError(t, err)
		require.NoError(t, z.Close())
		at = end
	}
	return out.String()
}

func TestARC(t *testing.T) {
	for name, file := range map[string]string{"version 1": arcOne, "version 2": arcTwo} {
		for form, file := range map[string]string{"plain": file, "members": members(t, file)} {
			t.Run(name+", "+form, func(t *testing.T) {
				r := NewReader(strings.NewReader(file), ReaderOptions{Verify: true})
				var at []int64
				kinds := []string{}
				check := func(rec *Record) {
					kinds = append(kinds, rec.Type())
					block, err := io.ReadAll(rec)
					require.NoError(t, err)
					switch rec.Type() {
					case "response":
						require.Equal(t, arcPage, string(block))
						require.Equal(t, "http://a.test/%20b", rec.Fields().URI("WARC-Target-URI"))
						require.Equal(t, "192.0.2.1", rec.Get("WARC-IP-Address"))
						date, ok := rec.Fields().Date()
						require.True(t, ok)
						require.Equal(t, time.Date(1997, 2, 3, 4, 5, 6, 0, time.UTC), date)
					case "resource":
						require.Equal(t, "a 1.2", string(block))
						require.Equal(t, "text/dns", rec.Get("Content-Type"))
						date, ok := rec.Fields().Date()
						require.True(t, ok)
						require.Equal(t, time.Date(1997, 2, 3, 4, 5, 0, 0, time.UTC), date)
					}
					require.NoError(t, rec.Close())
					at = append(at, rec.Offset, rec.Length)
				}
				for rec, err := range r.Records() {
					require.NoError(t, err)
					check(rec)
				}
				require.Equal(t, []string{"warcinfo", "response", "resource"}, kinds)
				addresses := at
				for i := 0; i < len(addresses); i += 2 { // each can be read alone
					r.ResetAt(strings.NewReader(file), addresses[i], addresses[i+1])
					rec, err := r.Next()
					require.NoError(t, err)
					check(rec)
				}
				require.Equal(t, append(kinds[:3:3], kinds[:3]...), kinds)
			})
		}
	}
}

// Invalid records are damage, and no record after it is invented.
func TestBrokenARC(t *testing.T) {
	for name, file := range map[string]string{
		"truncated block":  arcOne[:len(arcOne)-40],
		"invalid length":   strings.Replace(arcOne, " 50\n", " -1\n", 1),
		"length too large": strings.Replace(arcOne, " 50\n", " 4900\n", 1),
		"length too small": strings.Replace(arcOne, " 50\n", " 40\n", 1),
		"no address":       strings.Replace(arcOne, " 192.0.2.1 ", " somewhere ", 1),
		"no date":          strings.Replace(arcOne, " 19970203040506 text", " then text", 1),
		"truncated member": members(t, arcOne)[:200],
	} {
		records, damage := 0, 0
		for _, err := range NewReader(strings.NewReader(file), ReaderOptions{}).Records() {
			if err != nil {
				require.ErrorIs(t, err, ErrDamaged, name)
				damage++
				continue
			}
			records++
		}
		require.Equal(t, 1, damage, name)
		require.Less(t, records, 3, name)
	}
}

// FuzzARC asserts that the fields of an ARC header form a valid WARC header.
func FuzzARC(f *testing.F) {
	f.Add("http://a.test/ b 192.0.2.1 19970203040506 text/html 49", true)
	f.Add("dns:a.test 2001:db8::1 199702030405 text/dns 200 - - 200 old.arc 5", false)
	f.Fuzz(func(t *testing.T, line string, http bool) {
		line, _, _ = strings.Cut(line, "\n")
		version, fields, err := arcHeader(line, nil, http)
		if err != nil {
			return
		}
		header := []byte("WARC/1.1\r\n")
		for _, field := range fields {
			require.False(t, strings.ContainsAny(field.Value, "\r\n"), "%q", field)
			header = append(header, field.Name+": "+field.Value+"\r\n"...)
		}
		_, again, err := parseHeader(header, nil)
		require.NoError(t, err)
		for i, field := range fields {
			require.Equal(t, strings.Trim(field.Value, " \t"), again[i].Value)
		}
		_, err = fields.length()
		require.NoError(t, err)
		require.Contains(t, []string{"ARC/1", "ARC/2"}, version)
	})
}
