//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/wire/resp"
)

// greatReplies are what a server answers a command with that is meant to fill the memory of who asks; "" is each
// command but those by which a connection begins.
var greatReplies = []struct {
	name, command string
	reply         func(io.Writer)
}{
	{"attribute", "INFO", endlessly("|1\r\n+a\r\n+b\r\n")},
	{"attribute of all", "", endlessly("|1\r\n+a\r\n+b\r\n")},
	{"great attribute", "INFO", endlessly("|1\r\n$1\r\na\r\n$60000000\r\n" + xs(60_000_000) + "\r\n")},
	{"great fields", "INFO", bulk(6, func(i int) string { return fmt.Sprintf("f%d:%s\r\n", i, xs(10_000_000)) })},
	{"many fields", "INFO", bulk(5_000_000, func(i int) string { return fmt.Sprintf("f%d:1\r\n", i) })},
	{"other fields", "INFO", otherFields()},
	{"bulk of all", "", bulk(1, func(int) string { return xs(60_000_000) })},
	{"errors", "", func(w io.Writer) { _, _ = io.WriteString(w, "-ERR "+xs(60_000)+"\r\n") }},
	{"elements of all", "", array(1_000_000, "_\r\n")},
	{"arrays of all", "", array(500_000, "*1\r\n_\r\n")},
	{"deep", "", func(w io.Writer) {
		_, _ = io.WriteString(w, strings.Repeat("*1\r\n", 31))
		array(1_000_000, "_\r\n")(w)
	}},
	{"pushes", "", endlessly(">2\r\n+a\r\n$1000000\r\n" + xs(1_000_000) + "\r\n")},
	{"clients", "CLIENT LIST", bulk(3_000_000, func(i int) string { return fmt.Sprintf("id=%d addr=a:1\n", i) })},
	{"slow commands", "SLOWLOG", array(10_000,
		"*6\r\n:1\r\n:1700000000\r\n:99\r\n*1\r\n$5000\r\n"+xs(5000)+"\r\n+a:1\r\n+b\r\n")},
	{"settings", "CONFIG", array(400_000, "$100\r\n"+xs(100)+"\r\n")},
	{"events", "LATENCY", array(300_000, "*4\r\n+e\r\n:1700000000\r\n:1\r\n:1\r\n")},
}

func xs(n int) string { return strings.Repeat("x", n) }

// endlessly writes a text again and again, as long as it is taken.
func endlessly(text string) func(io.Writer) {
	return func(w io.Writer) {
		if len(text) < 1000 {
			text = strings.Repeat(text, 1000)
		}
		for {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
	}
}

// bulk writes a string of so many lines.
func bulk(n int, line func(i int) string) func(io.Writer) {
	return func(to io.Writer) {
		size := 0
		for i := range n {
			size += len(line(i))
		}
		w := bufio.NewWriterSize(to, 64<<10)
		_, _ = fmt.Fprintf(w, "$%d\r\n", size)
		for i := range n {
			if _, err := w.WriteString(line(i)); err != nil {
				return // it is not taken
			}
		}
		_, _ = w.WriteString("\r\n")
		_ = w.Flush()
	}
}

// otherFields writes as many fields of INFO as are taken of one, each time others.
func otherFields() func(io.Writer) {
	begin := 0 // the source of INFO has one connection
	return func(w io.Writer) {
		begin += 20_000
		bulk(20_000, func(i int) string { return fmt.Sprintf("%s%d:%d\r\n", xs(100), begin+i, i) })(w)
	}
}

// array writes an array of so many times the same.
func array(n int, element string) func(io.Writer) {
	return func(to io.Writer) {
		w := bufio.NewWriterSize(to, 64<<10)
		_, _ = fmt.Fprintf(w, "*%d\r\n", n)
		for range n {
			if _, err := w.WriteString(element); err != nil {
				return
			}
		}
		_ = w.Flush()
	}
}

// answering passes requests to a server one by one, but answers one command itself.
func answering(server, command string, answer func(io.Writer)) func(net.Conn) {
	return func(c net.Conn) {
		behind, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer behind.Close()
		requests, replies := resp.NewReader(c, resp.Limits{}), resp.NewReader(io.TeeReader(behind, c), resp.Limits{})
		for {
			v, err := requests.Read()
			if err != nil {
				return
			}
			var words []string
			for _, w := range v.Elems {
				words = append(words, w.Text())
			}
			asked := strings.ToUpper(strings.Join(words, " "))
			begins := strings.HasPrefix(asked, "CLIENT SET") || strings.HasPrefix(asked, "HELLO") ||
				strings.HasPrefix(asked, "SELECT") || asked == "INFO" || asked == "INFO SERVER"
			if strings.HasPrefix(asked, command) && !begins {
				answer(c)
				continue
			}
			if _, err := behind.Write(resp.AppendCommand(nil, words...)); err != nil {
				return
			}
			if _, err := replies.Skip(); err != nil {
				return
			}
		}
	}
}

// maxPeak is the most memory that a command may take of great replies: twice what it takes of usual ones.
const maxPeak = 96 << 20

// greatCases: each command that talks to a server for long, and each great reply.
func greatCases() []faultCase {
	var all []faultCase
	for i, g := range greatReplies {
		for k, line := range []string{
			"slowpath doctor $PEER --for 6s --no-tap --no-host", "slowpath bench $PEER --for 5s --connections 5",
			"slowpath serve --listen 127.0.0.1:0 --data d --no-tap --no-host $PEER",
		} {
			command := strings.Fields(line)[1]
			c := faultCase{
				family: "great replies", name: command + " " + g.name, quick: (i+k)%8 == 0,
				before: func(r *faultRun) {
					r.listen("PEER", answering(r.server().Addr, g.command, g.reply))
					for _, dir := range []string{r.dir, filepath.Dir(r.dir)} { // serve becomes another user
						if err := os.Chmod(dir, 0o755); err != nil {
							r.Fatal(err)
						}
					}
				},
				line: line, codes: "0|1|3", says: `127\.`, lines: 4,
				during: func(r *faultRun) { r.watchPeak(command == "serve") },
			}
			if command == "serve" {
				c.lines, c.leaves = 1000, []string{"*"}
			}
			all = append(all, c)
		}
	}
	return all
}

// watchPeak fails when the command takes too much memory, until it ends. One without an end is ended after a while.
func (r *faultRun) watchPeak(endless bool) {
	r.Helper()
	peak, begin := int64(0), time.Now()
	for ended := false; !ended && time.Since(begin) < time.Minute; await.Pass(10 * time.Millisecond) {
		peak = max(peak, peakMemory(r.cmd.Process.Pid))
		if endless && time.Since(begin) > 9*time.Second {
			_ = r.cmd.Process.Signal(syscall.SIGTERM)
			endless = false
		}
		select {
		case <-r.ended:
			ended = true
		default:
		}
	}
	r.Logf("peak %d MB", peak>>20)
	if peak > maxPeak {
		r.Errorf("it took %d MB of memory, more than %d MB", peak>>20, maxPeak>>20)
	}
}

// peakMemory is the most memory in bytes that a process had until now; 0 where it has ended.
func peakMemory(pid int) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseInt(kb, 10, 64)
	return n << 10
}
