package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"slowpath/internal/lab/servers"
)

// likeIt is how a node of a cluster of `lab up` was started, for another one like it. It has the password and the key
// of the server, as the files of the server have.
type likeIt struct {
	Server string `json:"server"` // name of its version, or its path
	Spec   Spec   `json:"spec"`
	CA     []byte `json:"ca,omitempty"` // PEM
	Cert   []byte `json:"cert,omitempty"`
	Key    []byte `json:"key,omitempty"`
}

// like is nil for servers beside which no other one is started later.
func (g *group) like(s Spec, server string) *likeIt {
	if !s.Persistent || !s.cluster || s.nodes != nil {
		return nil
	}
	l := &likeIt{Server: server, Spec: s}
	if g.certs != nil {
		l.CA, l.Cert, l.Key = g.certs.ca, g.certs.cert, g.certs.key
	}
	return l
}

// Errors of ClusterOf.
var (
	ErrNoCluster = errors.New("no cluster of lab up")
	ErrClusters  = errors.New("several clusters have one name")
)

// ClusterOf gives the nodes of the cluster that `lab up` of this user has started under a name, also those whose
// process has ended since. Their roles are those they were started with.
func (f *Fleet) ClusterOf(name string) ([]*Instance, error) {
	entries, err := f.Registry.Entries()
	if err != nil {
		return nil, err
	}
	dirs := map[string]Entry{}
	for _, e := range entries {
		if e.Kind == KindDir {
			dirs[e.Path] = e
		}
	}
	var nodes []*Instance
	var others []string // names of other clusters
	for _, e := range entries {
		if e.Info == nil || e.Like == nil || !e.Persistent || !e.own() {
			continue
		}
		if e.fleet() != name {
			if !slices.Contains(others, e.fleet()) {
				others = append(others, e.fleet())
			}
			continue
		}
		if len(nodes) > 0 && nodes[0].Group != e.Group {
			return nil, fmt.Errorf("%w: %s and %s are of different ones by the name %q; stop them (slowpath lab down "+
				"%[4]s), and start each under a --name of its own", ErrClusters, nodes[0].Addr, e.Info.Addr, name)
		}
		spec := e.Like.Spec
		spec.cluster = true
		nodes = append(nodes, &Instance{
			Info: *e.Info, spec: spec, foundBy: e.Like.Server, registry: f.Registry, process: e, dir: dirs[e.Path],
		})
	}
	if len(nodes) == 0 && len(others) > 0 {
		return nil, fmt.Errorf("%w by the name %q; there is: --name %s", ErrNoCluster, name,
			strings.Join(others, ", --name "))
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("%w by the name %q; start one: slowpath lab up --name %[2]s --masters 3 --replicas 1",
			ErrNoCluster, name)
	}
	return nodes, nil
}

// FoundBy is by what its program is found again: the name of its version, or its path.
func (i *Instance) FoundBy() string { return i.foundBy }

// StartLike starts a server like a node of a cluster of `lab up`, with the same options and certificate, which is not
// in the cluster yet. port 0 is a free one. It waits as Start does.
func (f *Fleet) StartLike(ctx context.Context, node *Instance, bin servers.Binary, port int, role string) (*Instance,
	error,
) {
	like := node.process.Like
	if like == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoCluster, node.Addr)
	}
	spec := like.Spec
	spec.cluster, spec.Port = true, port
	if _, err := clusterPorts(spec, 1); err != nil {
		return nil, err
	}
	g := &group{id: node.Group}
	if spec.TLS {
		g.certs = &certificates{like.CA, like.Cert, like.Key}
	}
	return f.start(ctx, bin, spec, g, role)
}

// Password is that of the default user; empty: there is none.
func (i *Instance) Password() string { return i.spec.Password }

// Conn is a connection to a server, logged in as the default user.
type Conn struct {
	n node
}

// Connect opens a connection.
func (i *Instance) Connect(ctx context.Context) (*Conn, error) {
	c, err := i.login(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", i.Addr, err)
	}
	return &Conn{node{c, i.Info}}, nil
}

// Do sends one command and waits for its reply, up to patience; 0: 5 s. The reply is string, int64, []any or nil. An
// error reply is an error that [Refused] knows.
func (c *Conn) Do(ctx context.Context, patience time.Duration, args ...string) (any, error) {
	c.n.patience = patience
	return c.n.ask(ctx, args...)
}

// Close ends the connection.
func (c *Conn) Close() error { return c.n.Close() }

// Refused reports whether an error is an error reply of a server that contains a text.
func Refused(err error, text string) bool {
	var r refusal
	return errors.As(err, &r) && strings.Contains(string(r), text)
}

// ErrBusy says that another process changes the same cluster.
var ErrBusy = errors.New("another lab cluster command changes it")

// Lock keeps other processes from changing the cluster of a name, until unlock or the end of this process.
func (r *Registry) Lock(name string) (unlock func(), err error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(r.dir, ".lock-"+name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the cluster %q: %w", name, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("the cluster %q: %w; wait for its end", name, ErrBusy)
		}
		return nil, fmt.Errorf("locking the cluster %q: %w", name, err)
	}
	return func() { file.Close() }, nil
}
