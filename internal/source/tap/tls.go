//go:build linux

package tap

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"slowpath/internal/recording"
)

// plaintextFunctions take or give plaintext in libraries with OpenSSL's functions, by the end of the connection that
// they are hooked at: the end where requests pass. The second of each returns 1, and says how much by its fourth
// argument.
var plaintextFunctions = map[uint8][]string{
	roleServer: {"SSL_read", "SSL_read_ex"},
	roleClient: {"SSL_write", "SSL_write_ex"},
}

// Bits of cookies as in bpf/tls.h: a function of the second kind, and one of a server's.
const (
	byPointer = 1 << iota
	ofServer
)

// maxPlaintexts is how many processes are hooked at once.
const maxPlaintexts = 256

// end is a process as one end of connections.
type end struct {
	pid  uint32
	role uint8
}

// plaintextWatch hooks the libraries of processes that speak TLS, so that the programs see the names of commands.
type plaintextWatch struct {
	begin, done *ebpf.Program // nil where the kernel has no such links
	places      func(f *elf.File, role uint8) (link.UprobeMultiOptions, error)
	links       map[end][]link.Link
	asked       map[end]error // what came of it
	told        map[string]bool
}

func newPlaintextWatch(programs map[string]*ebpf.Program) *plaintextWatch {
	return &plaintextWatch{
		begin: programs["on_plain"], done: programs["on_plain_done"], places: places,
		links: map[end][]link.Link{}, asked: map[end]error{}, told: map[string]bool{},
	}
}

// Why the names of a process's commands under TLS cannot be known.
var (
	errOwnTLS = errors.New("it has mapped no library with OpenSSL's functions (Go, Java and Node.js have TLS of " +
		"their own)")
	errTooMany = fmt.Errorf("%d other processes that speak TLS are looked at already", maxPlaintexts)
)

// ask has the programs see a process's plaintext from now on, and reports why they do not.
func (w *plaintextWatch) ask(pid int, role uint8) error {
	e := end{uint32(pid), role}
	if err, done := w.asked[e]; done || w.begin == nil {
		return err
	}
	w.asked[e] = w.hook(e)
	return w.asked[e]
}

func (w *plaintextWatch) hook(e end) error {
	if len(w.links) >= maxPlaintexts {
		w.forget()
	}
	if len(w.links) >= maxPlaintexts {
		return errTooMany
	}
	paths, err := mapped(e.pid, func(base string) bool {
		return strings.HasPrefix(base, "libssl") &&
			strings.Contains(base, ".so")
	})
	if err != nil {
		return fmt.Errorf("looking for its libraries: %w", err)
	}
	if len(paths) == 0 && e.role == roleServer {
		paths = []string{fmt.Sprintf("/proc/%d/exe", e.pid)} // the library may be part of it
	}
	for _, path := range paths {
		links, err := w.hookFile(path, e)
		w.links[e] = append(w.links[e], links...)
		if err != nil {
			return err
		}
	}
	if len(w.links[e]) == 0 {
		delete(w.links, e)
		return errOwnTLS
	}
	return nil
}

// places are where a file's plaintext passes: offsets in it, and cookies.
func places(f *elf.File, role uint8) (o link.UprobeMultiOptions, err error) {
	if at, ok := innerFunction(f, plaintextFunctions[role]); ok {
		return link.UprobeMultiOptions{Addresses: []uint64{at}, Cookies: []uint64{byPointer}}, nil
	}
	return namedPlaces(f, role)
}

func namedPlaces(f *elf.File, role uint8) (o link.UprobeMultiOptions, err error) {
	symbols, err := functionsOf(f)
	if err != nil {
		return o, err
	}
	for i, name := range plaintextFunctions[role] {
		if at := fileOffset(f, symbols[name]); at != 0 && !slices.Contains(o.Addresses, at) {
			o.Addresses, o.Cookies = append(o.Addresses, at), append(o.Cookies, uint64(i)*byPointer)
		}
	}
	return o, nil
}

// hookFile hooks what a file has of them, all by two links: the begin first, so that no end comes without one.
func (w *plaintextWatch) hookFile(path string, e end) (links []link.Link, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the functions in %s: %w", path, err)
	}
	defer f.Close()
	o, err := w.places(f, e.role)
	if err != nil {
		return nil, fmt.Errorf("reading the functions in %s: %w", path, err)
	}
	if len(o.Addresses) == 0 {
		return nil, nil
	}
	o.PID = e.pid
	for i := range o.Cookies {
		if e.role == roleServer {
			o.Cookies[i] |= ofServer
		}
	}
	ex, err := link.OpenExecutable(path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	begin, err := ex.UprobeMulti(nil, w.begin, &o)
	if err != nil {
		return nil, fmt.Errorf("hooking %s: %w", path, err)
	}
	done, err := ex.UretprobeMulti(nil, w.done, &o)
	if err != nil {
		return []link.Link{begin}, fmt.Errorf("hooking %s: %w", path, err)
	}
	return []link.Link{begin, done}, nil
}

// forget lets go of processes that have ended.
func (w *plaintextWatch) forget() {
	for e, links := range w.links {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", e.pid)); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		for _, l := range links {
			_ = l.Close() // there is nothing to detach from any more
		}
		delete(w.links, e)
		delete(w.asked, e)
	}
}

func (w *plaintextWatch) Close() error {
	var all []link.Link
	for _, links := range w.links {
		all = append(all, links...)
	}
	return closeAll(all)
}

// underTLS asks once for the plaintext of a process at an end of a TLS connection. A client's is not asked for where
// the server's end, on the same address, tells for both.
func (b *book) underTLS(a *kernelAddr, pid uint32, n Node) {
	if a.Tls == 0 || pid == 0 || int(pid) == b.self || b.sealed == nil || a.Role == roleClient && a.Laddr == a.Raddr {
		return
	}
	b.sealed(a, pid, n)
}

// askPlaintext hooks the library of a process that speaks TLS, and says it once where that cannot be.
func (t *Tap) askPlaintext(a *kernelAddr, pid uint32, n Node) {
	err := t.plaintexts.ask(int(pid), a.Role)
	if err == nil {
		return
	}
	what, enable := n.Address, "a server that links libssl as a library (Debian's does)"
	if a.Role == roleClient {
		if n.PID != 0 { // its server tells
			return
		}
		what, enable = t.book.names[pid], "watch on the server's host, too"
	}
	if errors.Is(err, os.ErrPermission) {
		enable = "run as root"
	}
	if t.plaintexts.told[what] {
		return
	}
	t.plaintexts.told[what] = true
	reason, _, _ := strings.Cut(err.Error(), "\n")
	t.Sink.Event(recording.Event{
		TimeNs: t.Clock.Now(), Source: recording.SourceTap, Subject: n.Address,
		Kind: recording.KindBlindSpot,
		Detail: recording.Detail(recording.BlindSpot{
			What: "names of commands under TLS of " + what, Why: reason,
			Enable: enable,
		}),
	})
}
