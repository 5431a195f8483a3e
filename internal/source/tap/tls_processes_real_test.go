//go:build linux

package tap

import (
	"bufio"
	"context"
	"io"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

// TestTLSNamesOfClient: where only the client is on this host, its library has the names: hiredis in redis-cli, which
// uses SSL_write, and Python, which uses SSL_write_ex.
func TestTLSNamesOfClient(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.RedisCLI, needs.Python)
	const python = `import socket, ssl, sys
c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
s = c.wrap_socket(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
for line in sys.stdin:
    a = line.split()
    s.sendall(b"*%d\r\n" % len(a) + b"".join(b"$%d\r\n%s\r\n" % (len(x), x.encode()) for x in a))
    print(s.recv(4096), flush=True)`
	for name, args := range map[string]func(port string) []string{
		"redis-cli": func(port string) []string { return []string{"redis-cli", "--tls", "--insecure", "-p", port} },
		"python3":   func(port string) []string { return []string{"python3", "-c", python, port} },
	} {
		for functions, where := range map[string]placesIn{"inner": places, "named": namedPlaces} {
			t.Run(name+","+functions, func(t *testing.T) {
				_, port, _ := startTLS(t)
				c := allCalls()
				c["strict_all"] = uint32(1)
				r := openRaw(t, port, c)
				argv := args(strconv.Itoa(port))
				cmd := exec.Command(argv[0], argv[1:]...)
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
				lines := bufio.NewReader(out)
				ask := func(line string) {
					t.Helper()
					if _, err := io.WriteString(in, line+"\n"); err != nil {
						t.Fatal(err)
					}
					if _, err := lines.ReadString('\n'); err != nil {
						t.Fatal(err)
					}
				}
				ask("PING")
				r.hookAt(t, where, cmd.Process.Pid, roleClient)
				var want []turn
				for range 5 {
					ask("SET key value")
					ask("GET key")
					ask("KEYS k*")
					ask("SET key " + strings.Repeat("v", 40_000)) // three records
					ask("OBJECT FREQ no")
					want = append(want, turn{"SET", 3}, turn{"GET", 2}, turn{"KEYS", 2}, turn{"SET", 3},
						turn{"OBJECT FREQ", 3})
				}
				names := r.names(t)
				calls, counts := r.finish(t)
				var got []turn
				for _, e := range calls {
					if e.Role == roleClient && int(e.Tgid) == cmd.Process.Pid && (len(got) > 0 || names[e.Op] != "?") {
						got = append(got, turn{names[e.Op], int(e.Args)})
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("got %v\nwant %v; %v", got, want, counts)
				}
			})
		}
	}
}

// callNames is a sink that passes on the names of calls.
type callNames struct {
	*recording.Recording
	ops chan string
}

func (h callNames) Call(c recording.Call, _ ...recording.Segment) { h.ops <- c.Side + " " + c.Op }

// TestTLSProcessesFound: the processes at both ends are found while the watch runs, and asked.
func TestTLSProcessesFound(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer, needs.RedisCLI)
	server, port, _ := startTLS(t)
	clk := clock.New()
	sink := callNames{recording.New(), make(chan string, 1000)}
	// By this address the client's end is not one that its server's end parses for.
	node := Node{Address: "node", Remote: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), uint16(port))}
	watch, err := Open(Options{
		Clock: clk, Files: host.Root{}, Sink: sink, Nodes: []Node{node},
		SamplePerSecond: 1 << 20,
	})
	attached(t, err)
	if watch.plaintexts.begin == nil {
		t.Skip("needs uprobe_multi links (Linux 6.6)")
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watch.Run(ctx) }()
	cmd := exec.Command("redis-cli", "--tls", "--insecure", "-h", "127.0.0.2", "-p", strconv.Itoa(port))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	named := map[string]bool{}
	for deadline := time.Now().Add(20 * time.Second); !named["both STRLEN"]; {
		if time.Now().After(deadline) {
			t.Fatal("no call has its name: ", named)
		}
		if _, err := io.WriteString(in, "STRLEN key\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case op := <-sink.ops:
			named[op] = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, e := range []processEnd{{uint32(server), roleServer}, {uint32(cmd.Process.Pid), roleClient}} {
		if err, asked := watch.plaintexts.results[e]; err != nil || !asked || len(watch.plaintexts.links[e]) == 0 {
			t.Errorf("process %v was asked: %v, %v", e, asked, err)
		}
	}
	if err := watch.Close(); err != nil {
		t.Error(err)
	}
}
