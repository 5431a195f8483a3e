//go:build linux

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"slowpath/internal/cli/clitest"
	"slowpath/internal/wire/resp"
)

// fakes are peers that are no Redis, or a broken one. Each is given one connection, which is closed when it returns.
var fakes = map[string]func(net.Conn){
	"http":     answer("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
	"hang":     func(c net.Conn) { drain(c) },
	"closes":   func(net.Conn) {},
	"reads":    answer(""), // and closes
	"middle":   answer("$100\r\nhalf of it"),
	"huge":     func(c net.Conn) { answer("*1000000000\r\n")(c); drain(c) },
	"garbage":  answer("\x00\xff\x1b[31mgarbage\r\n\x07"),
	"endless":  forever("all work and no play "),
	"bulk":     forever("$1000000000\r\nall work and no play "),
	"line":     forever("+all work and no play "),
	"yes":      forever("+OK\r\n"),
	"escapes":  forever("-ERR \x1b]0;owned\x07\x1b[2J go away\r\n"),
	"echoes":   echoes,
	"pushes":   pushes,
	"memcache": answer("ERROR\r\n"),
	"ssh":      answer("SSH-2.0-OpenSSH_9.2p1\r\n"),

	"reset":      func(c net.Conn) { reset(c) },
	"resets":     func(c net.Conn) { answer("")(c); reset(c) },
	"negative":   each("$-5\r\n"),
	"overflow":   each("$99999999999999999999\r\n"),
	"deep":       forever("*1\r\n"),
	"attributes": forever("|1\r\n+a\r\n+b\r\n"),
	"zeros":      forever("\x00"),
	"newlines":   forever("\r\n"),
	"drip":       drip,
	"null":       each("$-1\r\n"),
	"integer":    each(":1\r\n"),
	"map":        each("%1\r\n+a\r\n+b\r\n"),
	"message":    each("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n"),
	"errors":     each("-ERR no\r\n"),
	"loading":    each("-LOADING Redis is loading the dataset in memory\r\n"),
	"noauth":     each("-NOAUTH Authentication required.\r\n"),
	"denied":     each("-DENIED Redis is running in protected mode because protected mode is enabled\r\n"),
	"moved":      each("-MOVED 1 127.0.0.1:1\r\n"),
	"full":       func(c net.Conn) { _, _ = c.Write([]byte("-ERR max number of clients reached\r\n")) },
}

// speakTLS answers within TLS, with a certificate that nobody has signed.
func speakTLS(c net.Conn) {
	certificate, err := selfSigned()
	if err != nil {
		return
	}
	answer("+PONG\r\n")(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{certificate}}))
}

// reset ends a connection with RST when it is closed.
func reset(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }

// each answers all requests with the same text.
func each(text string) func(net.Conn) {
	return func(c net.Conn) {
		for requests := resp.NewReader(c, resp.Limits{}); ; {
			if _, err := requests.Read(); err != nil {
				return
			}
			if _, err := c.Write([]byte(text)); err != nil {
				return
			}
		}
	}
}

// drip sends a reply without end, a byte at a time.
func drip(c net.Conn) {
	for range time.Tick(50 * time.Millisecond) {
		if _, err := c.Write([]byte("+")); err != nil {
			return
		}
	}
}

// echoes refuses what it is told and repeats it, as Redis does with the arguments of a command that it does not know.
func echoes(c net.Conn) {
	b := make([]byte, 4096)
	if n, err := c.Read(b); err == nil {
		said := strings.ReplaceAll(string(b[:n]), "\r\n", " ")
		_, _ = c.Write([]byte("-ERR unknown command, with args beginning with: " + said + "\r\n"))
	}
}

// pushes answers each request with PONG, and sends push messages as long as they are taken.
func pushes(c net.Conn) {
	var writing sync.Mutex
	write := func(b []byte) error {
		writing.Lock()
		defer writing.Unlock()
		_, err := c.Write(b)
		return err
	}
	for requests, begun := resp.NewReader(c, resp.Limits{}), false; ; begun = true {
		if _, err := requests.Read(); err != nil || write([]byte("+PONG\r\n")) != nil {
			return
		}
		if !begun {
			go func() {
				for many := bytes.Repeat([]byte(">2\r\n+a\r\n:1\r\n"), 100_000); write(many) == nil; {
				}
			}()
		}
	}
}

// answer waits for the first bytes.
func answer(text string) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := c.Read(make([]byte, 4096)); err == nil {
			_, _ = c.Write([]byte(text))
		}
	}
}

// forever repeats a text as long as it is taken.
func forever(text string) func(net.Conn) {
	return func(c net.Conn) {
		go drain(c)
		for {
			if _, err := c.Write([]byte(strings.Repeat(text, 1000))); err != nil {
				return
			}
		}
	}
}

func drain(c net.Conn) {
	for b := make([]byte, 4096); ; {
		if _, err := c.Read(b); err != nil {
			return
		}
	}
}

// startFake is "fake NAME KIND".
func startFake(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fake NAME KIND")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv(args[0], l.Addr().String())
	serve := fakes[args[1]]
	switch {
	case args[1] == "nothing": // listens there no more
		l.Close()
		return
	case args[1] == "tls":
		serve = speakTLS
	case serve == nil:
		ts.Fatalf("no fake %q", args[1])
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reachedFakes.Store(l.Addr().String(), true)
			ts.Defer(func() { c.Close() })
			go func() { defer c.Close(); serve(c) }()
		}
	}()
}

// reachedFakes holds the addresses of the fakes that had a connection.
var reachedFakes sync.Map

// reached is "reached NAME": waits until somebody has connected to the fake.
func reached(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: reached NAME")
	}
	clitest.Eventually(ts, "a connection to "+args[0],
		func() bool { _, ok := reachedFakes.Load(ts.Getenv(args[0])); return ok })
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
