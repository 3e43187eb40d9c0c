package fetch_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sealer writes records of TLS 1.3 after the handshake of a tls.Conn (RFC 8446, 5.2).
type sealer struct {
	aead cipher.AEAD
	iv   []byte
	seq  uint64
}

// newSealer takes over from a server whose keys were logged. It returns nil if they are not for
// AES-128.
func newSealer(t *testing.T, conn *tls.Conn, log string) *sealer {
	if conn.ConnectionState().CipherSuite != tls.TLS_AES_128_GCM_SHA256 {
		return nil
	}
	_, line, _ := strings.Cut(log, "SERVER_TRAFFIC_SECRET_0 ")
	_, line, _ = strings.Cut(line, " ")
	line, _, _ = strings.Cut(line, "\n")
	secret, err := hex.DecodeString(line)
	assert.NoError(t, err)
	derive := func(label string, n int) []byte {
		label = "tls13 " + label
		info := append([]byte{0, byte(n), byte(len(label))}, label...)
		key, err := hkdf.Expand(sha256.New, secret, string(append(info, 0)), n)
		assert.NoError(t, err)
		return key
	}
	block, err := aes.NewCipher(derive("key", 16))
	assert.NoError(t, err)
	aead, err := cipher.NewGCM(block)
	assert.NoError(t, err)
	return &sealer{aead: aead, iv: derive("iv", 12)}
}

// record returns a record of a type: 22 for messages of the handshake, 23 for data.
func (s *sealer) record(kind byte, data []byte) []byte {
	head := []byte{23, 3, 3, 0, 0}
	binary.BigEndian.PutUint16(head[3:], uint16(len(data)+1+s.aead.Overhead()))
	nonce := bytes.Clone(s.iv)
	for i := range 8 {
		nonce[4+i] ^= byte(s.seq >> (56 - 8*i))
	}
	s.seq++
	return s.aead.Seal(head, nonce, append(bytes.Clone(data), kind), head[:5:5])
}

// ticket returns a session ticket, nearly as long as crypto/tls takes it (RFC 8446, 4.6.1).
func (s *sealer) ticket() (records []byte) {
	const size = 65_000
	body := []byte{0, 0, 1, 0, 0, 0, 0, 0, 1, 7, size >> 8, size & 0xff}
	body = append(append(body, make([]byte, size)...), 0, 0)
	message := append([]byte{4, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	for len(message) > 0 {
		n := min(len(message), 16<<10)
		records = append(records, s.record(22, message[:n])...)
		message = message[n:]
	}
	return records
}

// A server that sends session tickets between the bytes of a response costs no more traffic than one
// of HTTP/2 that sends frames nobody wants.
func TestSessionTicketsWithoutEnd(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	certificates := srv.TLS.Certificates
	srv.Close()
	const head = ok + "Content-Length: 1000\r\n\r\n"
	for _, tt := range []struct {
		name, first, slowly string // what comes at once, and byte by byte with tickets between
	}{
		{"in the head", "", head},
		{"in the body", head, strings.Repeat("x", 1000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sent := make(chan int, 1) // bytes; -1 if the cipher is another one
			base := listen(t, func(s *session) {
				var keys bytes.Buffer
				secure := tls.Server(s.Conn, &tls.Config{
					Certificates: certificates, KeyLogWriter: &keys, SessionTicketsDisabled: true,
					MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
				})
				if _, err := secure.Read(make([]byte, 4096)); !assert.NoError(t, err) {
					sent <- 0
					return
				}
				if seal := newSealer(t, secure, keys.String()); seal != nil {
					s.say(string(seal.record(23, []byte(tt.first))))
					sent <- flood(s, seal, tt.slowly)
					return
				}
				s.Conn.Close()
				sent <- -1
			})
			c := newClient(t, fetch.Options{TLSConfig: &tls.Config{InsecureSkipVerify: true}})
			r, err := c.Get(t.Context(), "https"+strings.TrimPrefix(base, "http"))
			n := <-sent
			switch {
			case n < 0:
				t.Skip("this machine prefers a cipher other than AES-128")
			case tt.first == "":
				require.ErrorIs(t, err, fetch.HeaderTooLarge)
			default:
				require.NoError(t, err)
				require.Equal(t, fetch.CutDisconnect, r.Truncated)
			}
			require.Less(t, n, 16<<20, "with what is in the buffers of the system")
		})
	}
}

// flood sends a text with as many tickets before each byte as crypto/tls takes, until the client has
// closed the connection. It returns how many bytes the tickets had.
func flood(s *session, seal *sealer, text string) (n int) {
	for _, c := range []byte(text) {
		for range 16 {
			wrote, err := s.Write(seal.ticket())
			if n += wrote; err != nil {
				return n
			}
		}
		s.say(string(seal.record(23, []byte{c})))
	}
	return n
}
