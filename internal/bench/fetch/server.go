package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// paragraph is repeated in the pages: a link for every 320 bytes.
var paragraph = `<p class="x y">` + strings.Repeat("some twenty bytes.. ", 13) +
	`<a href="/some/page.html?id=1">text</a></p>` + "\n\n"

// linksOf returns the number of links in a page of the given size.
func linksOf(size int) int { return size / len(paragraph) }

// serve prints its address on standard output and serves until standard input ends. It parses as
// little of a request as possible, since it shares the machine with the measured client.
func serve(size int) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	page := strings.Repeat(paragraph, size/len(paragraph)) +
		strings.Repeat(" ", size%len(paragraph))
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: " +
		strconv.Itoa(size) + "\r\n\r\n" + page)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go converse(conn, answer)
		}
	}()
	fmt.Println(l.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func converse(conn net.Conn, answer []byte) {
	defer conn.Close()
	br := bufio.NewReader(conn)
	for {
		for {
			line, err := br.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) == len("\r\n") {
				break
			}
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// startServer runs serve in a separate process and returns its address.
func startServer(size int) (addr string, stop func(), err error) {
	cmd := exec.Command(os.Args[0], "-size", strconv.Itoa(size), serverArg)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		in.Close()
		_ = cmd.Wait()
	}
	addr, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, err
	}
	return strings.TrimSpace(addr), stop, nil
}
