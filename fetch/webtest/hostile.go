package webtest

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// How many bytes the traps send, and how slowly.
const (
	hugeSize   = 64 << 20
	dripSize   = 1 << 20
	dripWait   = 100 * time.Millisecond
	shortSize  = 1000
	shortClaim = 100_000
	bombBlocks = 1 << 10 // of bombBlock bytes each
	bombBlock  = 1 << 20
)

// filler is what endless bodies consist of.
var filler = bytes.Repeat([]byte("<p>and so on, and so on</p>\n"), 1024)

// promise begins a page of a size.
func (x *exchange) promise(size int) {
	h := x.w.Header()
	h["Content-Type"] = typeHTML
	h["Content-Length"] = []string{strconv.Itoa(size)}
	x.begin(http.StatusOK)
}

// huge sends a valid page of hugeSize bytes.
func (x *exchange) huge(string) int {
	x.promise(hugeSize)
	for left := hugeSize; left > 0; {
		n, err := x.w.Write(filler[:min(left, len(filler))])
		if err != nil {
			break
		}
		left -= n
	}
	return http.StatusOK
}

// endless sends HTML in chunks until the client has had enough.
func (x *exchange) endless(string) int {
	x.w.Header()["Content-Type"] = typeHTML
	x.begin(http.StatusOK)
	for x.r.Method == http.MethodGet && x.r.Context().Err() == nil {
		if _, err := x.w.Write(filler); err != nil {
			break
		}
	}
	return http.StatusOK
}

// drip sends a byte now and then: each read succeeds, but the page takes a day.
func (x *exchange) drip(string) int {
	x.promise(dripSize)
	control := http.NewResponseController(x.w)
	for range dripSize {
		_, err := x.w.Write([]byte{'.'})
		if err != nil || control.Flush() != nil || !x.sleep(dripWait) {
			break
		}
	}
	return http.StatusOK
}

// short promises more bytes than it sends. The server closes such a connection by itself.
func (x *exchange) short(string) int {
	x.promise(shortClaim)
	x.w.Write(filler[:shortSize])
	_ = http.NewResponseController(x.w).Flush() // HTTP/2 would send nothing at all
	return http.StatusOK
}

// bomb sends a small gzip body that unpacks to a huge one.
func (x *exchange) bomb(string) int {
	h := x.w.Header()
	h["Content-Type"] = typeHTML
	h["Content-Encoding"] = gzipped
	x.begin(http.StatusOK)
	writeBomb(x.w, bombBlocks)
	return http.StatusOK
}

// deflatedBlock is one block of zeros between two byte boundaries of a deflate stream. It does not
// refer to earlier data, so it can be repeated: no bomb is ever built in memory.
var deflatedBlock = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression) // the level is valid
	w.Write(make([]byte, bombBlock))                   // a buffer does not fail
	w.Flush()
	return b.Bytes()
})

// writeBomb writes a valid gzip stream (RFC 1952) of some blocks of zeros.
func writeBomb(w io.Writer, blocks int) error {
	b := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}
	sum, zeros := uint32(0), make([]byte, bombBlock)
	for range blocks {
		if _, err := w.Write(append(b, deflatedBlock()...)); err != nil {
			return err
		}
		b = b[:0]
		sum = crc32.Update(sum, crc32.IEEETable, zeros)
	}
	b = append(b, 1, 0, 0, 0xff, 0xff) // a last block, stored and empty
	b = binary.LittleEndian.AppendUint32(b, sum)
	b = binary.LittleEndian.AppendUint32(b, uint32(blocks)*bombBlock)
	_, err := w.Write(b)
	return err
}

// garbage answers with bytes that are not HTTP.
func (x *exchange) garbage(string) int {
	return x.raw(func(w net.Conn) {
		io.WriteString(w, "\x16\x03\x01\x00 SSH-2.0-vweb 220 ready\r\n\x00\x00HTTP\r\n\r\n")
	})
}

// endlessHeaders starts a response whose header never ends.
func (x *exchange) endlessHeaders(string) int {
	return x.raw(func(w net.Conn) {
		_, err := io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
		line := bytes.Repeat([]byte("X-More: and so on, and so on\r\n"), 64)
		for err == nil {
			_, err = w.Write(line)
		}
	})
}

// raw takes the connection from the server, lets f write to it and closes it. Writes fail once the
// client has left or the web is closing, so f only has to check for write errors.
func (x *exchange) raw(f func(net.Conn)) int {
	x.web.conns.Add(1) // in place of the count that ends with the server's hold of it
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		x.web.conns.Done()
		// An HTTP/2 connection is shared by several requests. The stream ends without an answer.
		panic(http.ErrAbortHandler)
	}
	x.taken = conn
	w := x.web
	w.mu.Lock()
	w.hijacked[conn] = struct{}{}
	w.mu.Unlock()
	if w.ctx.Err() == nil { // else closeHijacked may have run before this one was entered
		f(conn)
	}
	w.mu.Lock()
	delete(w.hijacked, conn)
	w.mu.Unlock()
	conn.Close()
	return 0
}

// closeHijacked closes the connections that the server no longer tracks.
func (w *Web) closeHijacked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.hijacked {
		conn.Close()
	}
}
