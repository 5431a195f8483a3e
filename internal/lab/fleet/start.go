package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/step"
)

// Start starts one server and waits until it answers PING. Without a deadline in ctx it waits 30 s. The error ends with
// the last lines of the server's log, and then nothing is left.
func (f *Fleet) Start(ctx context.Context, bin servers.Binary, spec Spec) (*Instance, error) {
	return f.start(ctx, bin, spec, newGroup(), "standalone")
}

// group is servers that are started together.
type group struct {
	id    string
	certs *certificates
}

func newGroup() *group { return &group{id: newID()} }

// certificates are made once, so that the servers of a group trust each other.
func (g *group) certificates(s Spec) (certificates, error) {
	if g.certs == nil {
		c, err := newCertificates(net.ParseIP(s.bind()), s.RSA)
		if err != nil {
			return c, err
		}
		g.certs = &c
	}
	return *g.certs, nil
}

// portRaces is how often Start tries another port if another process has taken the free one.
const portRaces = 5

func (f *Fleet) start(ctx context.Context, bin servers.Binary, spec Spec, g *group, role string) (*Instance, error) {
	ctx, cancel := withDefaultTimeout(ctx, startTimeout)
	defer cancel()
	step.Say(ctx, "starting %s", bin.Name)
	if err := spec.check(bin); err != nil {
		return nil, fmt.Errorf("starting %s: %w", bin.Name, err)
	}
	for try := 1; ; try++ {
		port := spec.Port
		if port == 0 {
			ports, err := freePorts(1)
			if err != nil {
				return nil, fmt.Errorf("starting %s: %w", bin.Name, err)
			}
			port = ports[0]
		}
		i, err := f.startOn(ctx, bin, spec, g, role, port)
		if err == nil {
			return i, nil
		}
		taken := errors.Is(err, errPortTaken)
		if spec.Port != 0 && taken {
			err = fmt.Errorf("%w; give another port, or none", err)
		}
		if spec.Port != 0 || try == portRaces || !taken {
			return nil, fmt.Errorf("starting %s on port %d: %w", bin.Name, port, err)
		}
	}
}

// newDir names the directory of a server. Two servers of a group may try the same port; each has a directory of its
// own, so that the one that comes too late removes only that.
func (f *Fleet) newDir(g *group, port int) string {
	return filepath.Join(f.tmp, dirPrefix+g.id+"-"+strconv.Itoa(port)+"-"+newID())
}

func (f *Fleet) startOn(ctx context.Context, bin servers.Binary, spec Spec, g *group, role string, port int) (
	*Instance, error,
) {
	dir := f.newDir(g, port)
	i := &Instance{spec: spec, registry: f.Registry, foundBy: bin.FoundBy(), Info: Info{
		Group: g.id, Server: bin.Name, Version: bin.Version, Role: role, Cluster: spec.cluster, Dir: dir,
		LogPath: filepath.Join(dir, "server.log"),
		Addr:    net.JoinHostPort(spec.bind(), strconv.Itoa(port)), Port: port, TLS: spec.TLS, NetNS: spec.NetNS,
	}}
	if spec.UnixSocket || spec.NetNS != "" {
		i.Socket = filepath.Join(dir, "redis.sock")
	}
	conf := filepath.Join(dir, "redis.conf")
	if os.Geteuid() == 0 {
		i.programs, bin = bin.Dir, bin.From(programs)
	}
	i.argv = spec.argv(bin, conf)
	if spec.sentinelOf != nil {
		i.argv = append(i.argv, "--sentinel")
	}
	err := i.prepare(g, conf)
	if err == nil {
		err = HandOver(i.Dir)
	}
	if err == nil {
		err = i.exec()
	}
	if err == nil {
		err = i.awaitReady(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, i.Stop(context.WithoutCancel(ctx)))
	}
	return i, nil
}

// prepare records the server in the registry and writes its directory and files.
func (i *Instance) prepare(g *group, conf string) error {
	var err error
	if i.dir, err = i.registry.Add(Entry{
		Kind: KindDir, Group: g.id, Persistent: i.spec.Persistent, Fleet: i.spec.Fleet,
		Path: i.Dir,
	}); err != nil {
		return err
	}
	if i.process, err = i.registry.Add(Entry{
		Kind: KindProcess, Group: g.id, Persistent: i.spec.Persistent, Fleet: i.spec.Fleet,
		Path: i.Dir, Like: g.like(i.spec, i.foundBy),
	}); err != nil {
		return err
	}
	if err := os.Mkdir(i.Dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(i.LogPath, nil, 0o600); err != nil { // before HandOver: a proxy opens it itself
		return err
	}
	if i.TLS {
		certs, err := g.certificates(i.spec)
		if err == nil {
			err = certs.write(&i.Info)
		}
		if err != nil {
			return err
		}
	}
	if m := i.spec.nodes; m != nil {
		if err := os.WriteFile(filepath.Join(i.Dir, "nodes.conf"), []byte(m.nodesConf(i.Info)), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(conf, []byte(i.spec.config(i.Info)), 0o600)
}
