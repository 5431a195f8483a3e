package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/lab/servers"
)

// ErrNoProxy says that a proxy's Debian package is not installed, or cannot be downloaded.
var ErrNoProxy = errors.New("the proxy is not installed")

// proxy is a proxy program.
type proxy struct {
	program string
	// find also says what is to be opened of it: the program, or a directory above it that every user may enter, where
	// it may lie in a directory of root's; else empty
	find   func(context.Context, proxy) (path, open string, err error)
	conf   string // name of its configuration's file
	config func(i Info, backends []string) string
	args   func(i Info, conf string, backends []string) []string
}

var twemproxy = proxy{
	"nutcracker", ofPackage, "proxy.yaml",
	func(i Info, backends []string) string {
		var b strings.Builder
		// By fnv1a_64, keys that differ in their last digits only are next to each other, on one server.
		fmt.Fprintf(&b, "lab:\n  listen: %s\n  redis: true\n  hash: murmur\n  distribution: ketama\n  preconnect: "+
			"true\n  auto_eject_hosts: false\n  servers:\n", i.Addr)
		for _, addr := range backends {
			fmt.Fprintf(&b, "   - %s:1\n", addr)
		}
		return b.String()
	},
	func(i Info, conf string, _ []string) []string {
		// Its statistics have a port too, which cannot be disabled.
		return []string{
			"-c", conf, "-a", "127.0.0.1", "-s", strconv.Itoa(i.Port + busOffset), "-p",
			filepath.Join(i.Dir, "pid"), "-o", i.LogPath, // Debian's default is a file of root
		}
	},
}

var haproxy = proxy{
	"haproxy", ofPackage, "proxy.conf",
	func(i Info, backends []string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "global\n  maxconn 4000\ndefaults\n  mode tcp\n  timeout connect 2s\n  timeout client 1h\n  "+
			"timeout server 1h\nlisten lab\n  bind %s\n", i.Addr)
		for k, addr := range backends {
			fmt.Fprintf(&b, "  server s%d %s\n", k, addr)
		}
		return b.String()
	},
	func(_ Info, conf string, _ []string) []string { return []string{"-db", "-f", conf} },
}

// codisStandIn is this program, slowpath-lab.
var codisStandIn = proxy{
	"codis-stand-in", ofThisProgram, "proxy.conf",
	func(Info, []string) string { return "" },
	func(i Info, _ string, backends []string) []string {
		return append([]string{"codis-proxy", "--port", strconv.Itoa(i.Port)}, backends...)
	},
}

// StartTwemproxy starts a twemproxy (nutcracker) that spreads keys over servers. The error is ErrNoProxy if it is not
// installed.
func (f *Fleet) StartTwemproxy(ctx context.Context, backends ...*Instance) (*Instance, error) {
	return f.startProxy(ctx, twemproxy, Spec{}, backends)
}

// StartHAProxy starts an HAProxy that passes connections on to servers in turn. The error is ErrNoProxy if it is not
// installed.
func (f *Fleet) StartHAProxy(ctx context.Context, backends ...*Instance) (*Instance, error) {
	return f.startProxy(ctx, haproxy, Spec{}, backends)
}

// StartCodis starts a stand-in for Codis over servers: this program, which must have the command codis-proxy.
func (f *Fleet) StartCodis(ctx context.Context, backends ...*Instance) (*Instance, error) {
	return f.startProxy(ctx, codisStandIn, Spec{}, backends)
}

// startProxy heeds only whether the spec is persistent, and its name.
func (f *Fleet) startProxy(ctx context.Context, p proxy, spec Spec, backends []*Instance) (*Instance, error) {
	ctx, cancel := withDefaultTimeout(ctx, startTimeout)
	defer cancel()
	path, open, err := p.find(ctx, p)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.program, err)
	}
	g := newGroup()
	dir := f.newDir(g, ports[0])
	i := &Instance{spec: Spec{Persistent: spec.Persistent, Fleet: spec.Fleet}, registry: f.Registry, Info: Info{
		Group: g.id, Server: servers.Name(p.program), Role: "proxy",
		Dir:     dir,
		LogPath: filepath.Join(dir, "server.log"), Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0])),
		Port: ports[0],
	}}
	conf := filepath.Join(dir, p.conf)
	if open != "" && os.Geteuid() == 0 {
		i.programs, path = open, programs+strings.TrimPrefix(path, open)
	}
	i.argv = slices.Concat(asServerUser(), []string{path}, p.args(i.Info, conf, addrs(backends)))
	if err = i.prepare(g, conf); err == nil {
		err = os.WriteFile(conf, []byte(p.config(i.Info, addrs(backends))), 0o600)
	}
	if err == nil {
		err = HandOver(i.Dir)
	}
	if err == nil {
		err = i.exec()
	}
	if err == nil {
		err = i.awaitPassing(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", p.program, err), i.Stop(context.WithoutCancel(ctx)))
	}
	return i, nil
}

// ofThisProgram says where this program is.
func ofThisProgram(context.Context, proxy) (path, open string, err error) {
	path, err = os.Executable()
	return path, path, err
}

// ofPackage finds the program of a Debian package, which has its name.
func ofPackage(_ context.Context, p proxy) (path, open string, err error) {
	if path, err = findProgram(p.program); err != nil {
		return "", "", fmt.Errorf("%w: apt-get install %s: %w", ErrNoProxy, p.program, err)
	}
	return path, "", nil
}

// findProgram also searches /usr/sbin, which is not in the PATH of Debian's users.
func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		if sbin, sbinErr := exec.LookPath("/usr/sbin/" + name); sbinErr == nil {
			return sbin, nil
		}
	}
	return path, err
}

// awaitPassing waits until the proxy passes on a read.
func (i *Instance) awaitPassing(ctx context.Context) error {
	last := errors.New("not asked yet")
	err := poll(ctx, readyPoll, func() (bool, error) {
		select {
		case <-i.exited:
			return false, i.exitError()
		default:
		}
		_, last = i.Do(ctx, "GET", "slowpath:absent")
		return last == nil, nil
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("no reply to GET before the deadline (%w; %w); %s", err, last, i.logTail())
	}
	return err
}

func addrs(instances []*Instance) []string {
	out := make([]string, len(instances))
	for k, i := range instances {
		out[k] = i.Addr
	}
	return out
}
