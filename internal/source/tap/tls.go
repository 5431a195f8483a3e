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
)

// plaintextFunctions take or give plaintext in libraries with OpenSSL's functions, by the end of the connection that
// they are hooked at: the end where requests pass. The second of each returns 1, and says how much by its fourth
// argument.
var plaintextFunctions = map[kernelRole][]string{
	roleServer: {"SSL_read", "SSL_read_ex"},
	roleClient: {"SSL_write", "SSL_write_ex"},
}

// Bits of the hooks' cookies: a function of the second kind, and one of a server's.
const (
	byPointer = uint64(kernelTlsCookieBY_POINTER)
	ofServer  = uint64(kernelTlsCookieOF_SERVER)
)

// Bounds of hooking.
const (
	maxPlaintexts       = 256  // processes that are hooked at once
	maxPlaintextResults = 4096 // processes of which it is known whether they can be
)

// processEnd is a process as one end of connections.
type processEnd struct {
	pid  uint32
	role kernelRole
}

// plaintextWatch hooks the libraries of processes that speak TLS, so that the programs see the names of commands.
type plaintextWatch struct {
	begin, done *ebpf.Program // nil where the kernel has no such links
	files       Files
	places      func(f *elf.File, role kernelRole) (link.UprobeMultiOptions, error)
	links       map[processEnd][]link.Link
	results     map[processEnd]error // of hooking
	reported    map[string]bool      // blind spots
}

func newPlaintextWatch(programs map[string]*ebpf.Program, files Files) *plaintextWatch {
	return &plaintextWatch{
		begin: programs[kernelProgOnSslCall], done: programs[kernelProgOnSslReturn], files: files, places: places,
		links: map[processEnd][]link.Link{}, results: map[processEnd]error{}, reported: map[string]bool{},
	}
}

// Why the names of a process's commands under TLS cannot be known.
var (
	errOwnTLS = errors.New("it has mapped no library with OpenSSL's functions (Go, Java and Node.js have TLS of " +
		"their own)")
	errTooMany = fmt.Errorf("too many other processes speak TLS (%d are watched)", maxPlaintexts)
)

// watch has the programs read the plaintext of a process, and reports why they cannot.
func (w *plaintextWatch) watch(pid int, role kernelRole) error {
	e := processEnd{uint32(pid), role}
	if err, done := w.results[e]; done || w.begin == nil {
		return err
	}
	if len(w.results) >= maxPlaintextResults { // until some of them have ended
		return errTooMany
	}
	w.results[e] = w.hook(e)
	return w.results[e]
}

func (w *plaintextWatch) hook(e processEnd) error {
	if len(w.links) >= maxPlaintexts {
		return errTooMany
	}
	paths, err := mappedFiles(w.files, e.pid, func(base string) bool {
		return strings.HasPrefix(base, "libssl") && strings.Contains(base, ".so")
	})
	if err != nil {
		return fmt.Errorf("finding its libraries: %w", err)
	}
	if len(paths) == 0 && e.role == roleServer {
		paths = []string{w.files.Path(fmt.Sprintf("/proc/%d/exe", e.pid))} // the library may be part of it
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
func places(f *elf.File, role kernelRole) (o link.UprobeMultiOptions, err error) {
	if at, ok := innerFunction(f, plaintextFunctions[role]); ok {
		return link.UprobeMultiOptions{Addresses: []uint64{at}, Cookies: []uint64{byPointer}}, nil
	}
	return namedPlaces(f, role)
}

func namedPlaces(f *elf.File, role kernelRole) (o link.UprobeMultiOptions, err error) {
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

// hookFile hooks what a file has of them, all by two links: that of calls first, so that no return comes without one.
func (w *plaintextWatch) hookFile(path string, e processEnd) (links []link.Link, err error) {
	err = withELF(path, func(f *elf.File, name string) error {
		o, err := w.places(f, e.role)
		if err != nil || len(o.Addresses) == 0 {
			return err
		}
		o.PID = e.pid
		for i := range o.Cookies {
			if e.role == roleServer {
				o.Cookies[i] |= ofServer
			}
		}
		ex, err := link.OpenExecutable(name)
		if err != nil {
			return err
		}
		begin, err := ex.UprobeMulti(nil, w.begin, &o)
		if err != nil {
			return err
		}
		links = append(links, begin)
		done, err := ex.UretprobeMulti(nil, w.done, &o)
		if err == nil {
			links = append(links, done)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("hooking %s: %w", path, err)
	}
	return links, err
}

// drop stops to watch a process, at both ends.
func (w *plaintextWatch) drop(pid uint32) {
	for _, e := range []processEnd{{pid, roleServer}, {pid, roleClient}} {
		_ = closeAll(w.links[e]) // there is nothing to detach from any more
		delete(w.links, e)
		delete(w.results, e)
	}
}

func (w *plaintextWatch) Close() error {
	var all []link.Link
	for _, links := range w.links {
		all = append(all, links...)
	}
	return closeAll(all)
}

// underTLS has the plaintext of a process at an end of a TLS connection watched. A client's is not needed where the
// server's end, on the same address, reads it for both.
func (r *recorder) underTLS(a *kernelAddr, pid uint32, n Node) {
	if a.Tls == 0 || pid == 0 || r.onTLS == nil ||
		a.Role == roleClient && (a.Laddr == a.Raddr || a.Observer != notObserver) {
		return
	}
	r.onTLS(a, pid, n)
}

// watchPlaintext hooks the library of a process that speaks TLS, and records once where that cannot be done.
func (t *Tap) watchPlaintext(a *kernelAddr, pid uint32, n Node) {
	t.ends.watch(pid)
	err := t.plaintexts.watch(int(pid), a.Role)
	if err == nil {
		return
	}
	what, enable := n.Address, "a server that links libssl as a library (Debian's does)"
	if a.Role == roleClient {
		if n.PID != 0 { // its server's end has the names
			return
		}
		what, enable = t.recorder.names[pid], "watch on the server's host, too"
	}
	if errors.Is(err, os.ErrPermission) {
		enable = "run as root"
	}
	if t.plaintexts.reported[what] || len(t.plaintexts.reported) >= maxPlaintexts {
		return
	}
	t.plaintexts.reported[what] = true
	t.blind(n.Address, "names of commands under TLS of "+what, firstLine(err), enable)
}
