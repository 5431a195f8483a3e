//go:build linux

package tap

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"debug/elf"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/source/host"
)

// startTLS runs a real server that speaks TLS, and plain at a second port.
func startTLS(t testing.TB, more ...string) (pid, port, plain int) {
	t.Helper()
	dir := t.TempDir()
	cert, key := selfSigned(t, dir)
	for range 5 { // somebody else may take a port first
		port, plain = freePorts(t)
		args := []string{
			"--port", strconv.Itoa(plain), "--tls-port", strconv.Itoa(port), "--tls-cert-file", cert,
			"--tls-key-file", key,
			"--tls-ca-cert-file", cert, "--tls-auth-clients", "no", "--save", "", "--dir", dir,
			"--enable-debug-command", "yes",
		}
		cmd := exec.Command("redis-server", append(args, more...)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
		up, gone := false, false
		await.Until(t, "the server listens, or ended", func() bool {
			select {
			case <-ended:
				gone = true
			default:
				up = listensAt(fmt.Sprintf("127.0.0.1:%d", port))
			}
			return up || gone
		})
		if up {
			serverPIDs.Store(port, cmd.Process.Pid)
			return cmd.Process.Pid, port, plain
		}
	}
	t.Fatal("no TLS server")
	return 0, 0, 0
}

func freePorts(t testing.TB) (a, b int) {
	t.Helper()
	var l [2]net.Listener
	for i := range l {
		var err error
		if l[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		defer l[i].Close()
	}
	return l[0].Addr().(*net.TCPAddr).Port, l[1].Addr().(*net.TCPAddr).Port
}

// newTLSTalk is a talk with a program that has TLS of its own: Go's.
func newTLSTalk(t *testing.T, port int) *talk {
	c, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	return &talk{t: t, conn: c}
}

// write sends text as one record, or as several where it is long.
func (k *talk) write(text string) {
	k.t.Helper()
	if _, err := io.WriteString(k.conn, text); err != nil {
		k.t.Fatal(err)
	}
}

// placesIn finds where to hook.
type placesIn = func(*elf.File, kernelRole) (link.UprobeMultiOptions, error)

// hook has the programs see the plaintext of a process.
func (r *raw) hook(t testing.TB, pid int, role kernelRole) { r.hookAt(t, places, pid, role) }

func (r *raw) hookAt(t testing.TB, where placesIn, pid int, role kernelRole) {
	t.Helper()
	w := newPlaintextWatch(r.coll.Programs, host.Root{})
	w.places = where
	if w.begin == nil {
		t.Skip("needs uprobe_multi links (Linux 6.6)")
	}
	err := w.watch(pid, role)
	for _, links := range w.links {
		r.links = append(r.links, links...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// names are the commands by their number. They must be read before finish.
func (r *raw) names(t testing.TB) map[uint16]string {
	t.Helper()
	atRest(t, r.port) // as in finish: the last command is named after the client has its reply
	names := map[uint16]string{}
	(&mapReader{maps: r.coll.Maps}).eachOp(func(k kernelOpKey, op uint32) { names[uint16(op)] = opName(k.Name, k.Sub) })
	return names
}

// turn is a call under TLS as it was seen: its command, and how many arguments.
type turn struct {
	op   string
	args int
}

// turnsOf are the turns of a connection at one end, in their order, from the first that has a name: those before are of
// the handshake.
func turnsOf(calls []kernelCallEvent, names map[uint16]string, clientPort int, role kernelRole) []turn {
	var out []turn
	for _, e := range calls {
		client, _ := endsOf(&e.Addr)
		if e.Role == role && int(client.Port()) == clientPort && (len(out) > 0 || names[e.Op] != "?") {
			out = append(out, turn{names[e.Op], int(e.Args)})
		}
	}
	return out
}

func portOf(k *talk) int { return k.conn.LocalAddr().(*net.TCPAddr).Port }

func allCalls() constants {
	return constants{"sample_per_tick": uint32(1 << 30), "slow_ns": uint64(1) << 60, ringBytes: uint32(64 << 20)}
}

// TestTLS: of a server whose library is not asked, the turns of a connection are seen, with their times and without
// names.
func TestTLS(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	_, port, _ := startTLS(t)
	r := openRaw(t, port, constants{"slow_ns": uint64(20e6)})
	k := newTLSTalk(t, port)
	k.ask("+PONG\r\n", "PING")
	k.ask("+OK\r\n", "DEBUG", "SLEEP", "0.05")
	k.ask("+PONG\r\n", "PING")
	names := r.names(t)
	calls, counts := r.finish(t)
	const record = 5 + 1 + 16 // what TLS 1.3 adds: header, type of content, tag (RFC 8446, 5.2)
	asked := len(command("DEBUG", "SLEEP", "0.05")) + record
	seen := map[kernelRole]int{}
	for _, e := range calls { // on a busy machine a PING may be slow, too
		if ns := e.At[3] - e.At[0]; e.Flags&flagFresh == 0 && ns >= 50e6 && int(e.ReqBytes) == asked &&
			e.Flags&flagTLS != 0 && names[e.Op] == "?" {
			seen[e.Role]++
		}
	}
	if seen[roleServer] != 1 || seen[roleClient] != 1 {
		t.Errorf("the slow call was seen %d times by the server's end, %d by the client's: %v", seen[roleServer],
			seen[roleClient], counts)
	}
}

// TestTLSNames: where the server's library is asked, turns have the names of their commands at both ends, whatever the
// size of the requests, the parts in which they come, and their number.
func TestTLSNames(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	for name, where := range map[string]placesIn{"inner": places, "named": namedPlaces} {
		t.Run(name, func(t *testing.T) { testTLSNames(t, where) })
	}
}

func testTLSNames(t *testing.T, where placesIn) {
	pid, port, _ := startTLS(t)
	r := openRaw(t, port, allCalls())
	r.hookAt(t, where, pid, roleServer)
	k := newTLSTalk(t, port)
	var want []turn
	ask := func(name, reply string, args ...string) {
		t.Helper()
		k.ask(reply, args...)
		want = append(want, turn{name, len(args)})
	}
	flush := command("FLUSHALL") // as a value, it must not be taken for a command
	ask("PING", "+PONG\r\n", "PING")
	ask("SET", "+OK\r\n", "set", "key", "v")
	ask("GET", "$1\r\nv\r\n", "get", "key")
	ask("CONFIG GET", "*2\r\n$9\r\ndatabases\r\n$2\r\n16\r\n", "CONFIG", "GET", "databases")
	ask("KEYS", "*1\r\n$3\r\nkey\r\n", "KEYS", "*")
	ask("GEORADIUSBYMEMBE", "*0\r\n", "GEORADIUSBYMEMBER_RO", "no", "m", "1", "km")
	ask("SET", "+OK\r\n", "SET", "key", flush)
	ask("SET", "+OK\r\n", "SET", "big", strings.Repeat(flush, 10_000)) // many records, which begin anywhere
	ask("DEL", ":1\r\n", "DEL", "big")
	parts := []string{"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$22\r\n", "*1\r\n$8\r\nFLUSHALL\r\n", "abcd\r\n"}
	for i, p := range parts { // records of their own
		k.write(p)
		if i < len(parts)-1 {
			k.taken(port) // the server is to read them one by one
		}
	}
	k.expect("+OK\r\n")
	want = append(want, turn{"SET", 3})
	k.write(command("GET", "no") + command("PING") + command("DEL", "no")) // several in one record
	k.expect("$-1\r\n+PONG\r\n:0\r\n")
	want = append(want, turn{"GET +", 2})
	second := command("CONFIG", "GET", "databases")
	for cut := 1; cut < len(second); cut++ { // a request that is cut anywhere by the end of a turn
		k.write(command("PING") + second[:cut])
		k.expect("+PONG\r\n")
		k.write(second[cut:])
		k.expect("*2\r\n$9\r\ndatabases\r\n$2\r\n16\r\n")
		want = append(want, turn{"PING", 1}, turn{"CONFIG GET", 3})
	}
	k.write("PING\r\n") // inline
	k.expect("+PONG\r\n")
	want = append(want, turn{"?", 0})
	ask("ECHO", "$3\r\nend\r\n", "ECHO", "end")

	names := r.names(t)
	calls, counts := r.finish(t)
	if got := turnsOf(calls, names, portOf(k), roleServer); !slices.Equal(got, want) {
		t.Errorf("at the server's end:\n got %v\nwant %v; %v", got, want, counts)
	}
	// The client's end leaves out the turns whose reply it has before the server's end published it: with both on their
	// own CPU that may be a third of them.
	got, left := turnsOf(calls, names, portOf(k), roleClient), want
	for _, u := range got {
		i := slices.Index(left, u)
		if i < 0 {
			t.Fatalf("at the client's end:\n got %v\nwant %v", got, want)
		}
		left = left[i+1:]
	}
	if len(got) < len(want)/3 {
		t.Errorf("at the client's end %d turns of %d were seen", len(got), len(want))
	}
}

// TestTLSNamesFromMiddle: where the library is first asked in the middle of a request, what is left of it is no
// command.
func TestTLSNamesFromMiddle(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	pid, port, _ := startTLS(t)
	r := openRaw(t, port, allCalls())
	k := newTLSTalk(t, port)
	k.ask("+PONG\r\n", "PING")
	value := command("FLUSHALL")
	text := command("SET", "key", value)
	k.write(text[:len(text)-len(value)-2])
	k.taken(port) // the server is to read that first
	r.hook(t, pid, roleServer)
	k.write(value + "\r\n")
	k.expect("+OK\r\n")
	k.ask("$18\r\n"+value+"\r\n", "GET", "key")
	names := r.names(t)
	calls, _ := r.finish(t)
	if got, want := turnsOf(calls, names, portOf(k), roleServer), []turn{{"GET", 2}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestTLSNamesKeepPlace: however the requests are cut into records, what is in a value is never taken for a
// command, and the place in the stream is known afterwards.
func TestTLSNamesKeepPlace(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	const rounds = 100
	pid, port, _ := startTLS(t)
	r := openRaw(t, port, allCalls())
	r.hook(t, pid, roleServer)
	k := newTLSTalk(t, port)
	random := mathrand.New(mathrand.NewPCG(3, 5))
	for range rounds {
		many := 1 + random.IntN(20)
		var text strings.Builder
		for range many {
			text.WriteString(command("SET", "key", strings.Repeat(command("FLUSHALL"),
				1+random.IntN(100))[random.IntN(10):]))
		}
		for rest := text.String(); rest != ""; {
			n := 1 + random.IntN(min(len(rest), 5000))
			k.write(rest[:n])
			rest = rest[n:]
		}
		k.expect(strings.Repeat("+OK\r\n", many))
		k.ask(":0\r\n", "STRLEN", "no")
	}
	names := r.names(t)
	calls, counts := r.finish(t)
	seen := map[turn]int{}
	for _, u := range turnsOf(calls, names, portOf(k), roleServer) {
		seen[u]++
	}
	if seen[turn{"STRLEN", 2}] != rounds {
		t.Errorf("of %d STRLEN were seen: %v; %v", rounds, seen, counts)
	}
	for u := range seen {
		if u != (turn{"STRLEN", 2}) && u != (turn{"SET", 3}) && u != (turn{"SET +", 3}) {
			t.Errorf("nobody asked for %v: %v", u, seen)
		}
	}
}

// TestTLSSubscriber: what is pushed to a subscriber answers nothing.
func TestTLSSubscriber(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	pid, port, _ := startTLS(t)
	r := openRaw(t, port, allCalls())
	r.hook(t, pid, roleServer)
	sub, other := newTLSTalk(t, port), newTLSTalk(t, port)
	sub.ask("+PONG\r\n", "PING")
	sub.send("SUBSCRIBE", "channel")
	sub.expect("*3\r\n$9\r\nsubscribe\r\n$7\r\nchannel\r\n:1\r\n")
	other.ask(":1\r\n", "PUBLISH", "channel", "hello")
	sub.expect("*3\r\n$7\r\nmessage\r\n$7\r\nchannel\r\n$5\r\nhello\r\n")
	sub.send("PING")
	sub.expect("*2\r\n$4\r\npong\r\n$0\r\n\r\n")
	names := r.names(t)
	calls, counts := r.finish(t)
	if got, want := turnsOf(calls, names, portOf(sub), roleServer), []turn{{"PING", 1}}; !slices.Equal(got, want) ||
		counts["push"] != 1 {
		t.Errorf("got %v, want %v; %v", got, want, counts)
	}
}

// TestTLSNamesNotSwapped: of many connections at once, under TLS and plain, each has a command of its own, and never
// has that of another.
func TestTLSNamesNotSwapped(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	for name, more := range map[string][]string{"one thread": nil, "io-threads": {
		"--io-threads", "3",
		"--io-threads-do-reads", "yes",
	}} {
		t.Run(name, func(t *testing.T) { testNotSwapped(t, more) })
	}
}

func testNotSwapped(t *testing.T, more []string) {
	const rounds = 60
	pid, port, plain := startTLS(t, more...)
	r := openRaw(t, port, allCalls())
	watchPort(t, r.loaded, plain)
	r.hook(t, pid, roleServer)
	commands := []string{
		"GET", "STRLEN", "LLEN", "SCARD", "HLEN", "ZCARD", "EXISTS", "TTL", "TYPE", "LRANGE",
		"SMEMBERS", "HGETALL",
	}
	var wg sync.WaitGroup
	var talks []*talk
	made := make([]map[turn]int, 2*len(commands))
	for i := range made {
		op := commands[i%len(commands)]
		args := []string{op, "no-such-key"}
		if op == "LRANGE" {
			args = append(args, "0", "-1")
		}
		dial, sealed := newTalk, i < len(commands)
		if sealed {
			dial = newTLSTalk
		}
		k := dial(t, map[bool]int{true: port, false: plain}[sealed])
		for slices.ContainsFunc(talks, func(other *talk) bool { return portOf(other) == portOf(k) }) {
			k = dial(t, map[bool]int{true: port, false: plain}[sealed]) // ports of two servers' clients may be the same
		}
		talks = append(talks, k)
		made[i] = map[turn]int{}
		wg.Go(func() {
			in := bufio.NewReader(k.conn)
			for n := range rounds {
				many := 1 + n%7/5*(n%3) // mostly one
				if _, err := io.WriteString(k.conn, strings.Repeat(command(args...), max(many, 1))); err != nil {
					t.Error(err)
					return
				}
				for range max(many, 1) {
					if _, err := in.ReadSlice('\n'); err != nil {
						t.Error(err)
						return
					}
				}
				switch {
				case !sealed:
					made[i][turn{op, len(args)}] += max(many, 1)
				case many > 1:
					made[i][turn{op + " +", len(args)}]++
				default:
					made[i][turn{op, len(args)}]++
				}
			}
		})
	}
	wg.Wait()
	names := r.names(t)
	calls, counts := r.finish(t)
	if counts["dropped"] != 0 {
		t.Errorf("%d reports dropped, although the ring buffer has room for all", counts["dropped"])
	}
	for i, k := range talks {
		got := map[turn]int{}
		for _, u := range turnsOf(calls, names, portOf(k), roleServer) {
			got[u]++
		}
		if fmt.Sprint(got) != fmt.Sprint(made[i]) {
			t.Errorf("connection %d: got %v, made %v", i, got, made[i])
		}
	}
}

func selfSigned(t testing.TB, dir string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {
		Type:  "EC PRIVATE KEY",
		Bytes: secret,
	}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
