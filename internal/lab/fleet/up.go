package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"slowpath/internal/lab/servers"
)

// Up starts servers that keep running when the lab ends: a cluster if masters ≥ 1 (replicas is per master), else one
// server and its replicas. Without a deadline in ctx it waits 90 s. On error nothing is left.
func (f *Fleet) Up(ctx context.Context, bin servers.Binary, masters, replicas int, spec Spec) ([]Info, error) {
	ctx, cancel := withDefaultTimeout(ctx, clusterTimeout)
	defer cancel()
	spec.Persistent = true
	if masters > 0 {
		c, err := f.StartCluster(ctx, bin, masters, replicas, spec)
		if err != nil {
			return nil, err
		}
		return infos(c.Nodes), nil
	}
	all, err := f.StartReplicated(ctx, bin, replicas, spec)
	return infos(all), err
}

// Twemproxy, HAProxy, Envoy and Codis are the proxies of UpBehind.
const (
	Twemproxy = "twemproxy"
	HAProxy   = "haproxy"
	Envoy     = "envoy"
	Codis     = "codis" // a stand-in
)

// UpBehind starts a proxy that keeps running when the lab ends, and the servers behind it, each with its replicas:
// twemproxy, Envoy and Codis spread keys over several that do not know each other, HAProxy passes connections on to
// one. The proxy is the last. The error is ErrNoProxy if it is not installed. On error nothing is left.
func (f *Fleet) UpBehind(ctx context.Context, bin servers.Binary, name string, masters, replicas int,
	spec Spec,
) ([]Info, error) {
	p := map[string]proxy{
		Twemproxy: twemproxy, HAProxy: haproxy, Envoy: envoy, Codis: codisStandIn,
	}[name]
	if _, _, err := p.find(ctx, p); err != nil { // before servers are started for it
		return nil, err
	}
	ctx, cancel := withDefaultTimeout(ctx, clusterTimeout)
	defer cancel()
	spec.Persistent = true
	var all, backends []*Instance
	for range masters {
		started, err := f.StartReplicated(ctx, bin, replicas, spec)
		if err != nil {
			return nil, stopAll(ctx, all, err)
		}
		all, backends = append(all, started...), append(backends, started[0])
		if spec.Port > 0 {
			spec.Port++
		}
	}
	front, err := f.startProxy(ctx, p, spec, backends)
	if err != nil {
		return nil, stopAll(ctx, all, err)
	}
	return infos(append(all, front)), nil
}

// stopAll stops what was started before an error.
func stopAll(ctx context.Context, all []*Instance, err error) error {
	for _, i := range all {
		err = errors.Join(err, i.Stop(context.WithoutCancel(ctx)))
	}
	return err
}

// StartReplicated starts one server and its replicas without a cluster, and waits until they are in sync. The first one
// is the master.
func (f *Fleet) StartReplicated(ctx context.Context, bin servers.Binary, replicas int, spec Spec) ([]*Instance, error) {
	ctx, cancel := withDefaultTimeout(ctx, clusterTimeout)
	defer cancel()
	g := newGroup()
	role := "standalone"
	if replicas > 0 {
		role = "master"
	}
	master, err := f.start(ctx, bin, spec, g, role)
	if err != nil {
		return nil, err
	}
	all := []*Instance{master}
	spec.Port, spec.replicaOf = 0, &master.Info
	for range replicas {
		replica, err := f.start(ctx, bin, spec, g, "replica")
		if err == nil {
			all = append(all, replica)
			err = replica.awaitSync(ctx)
		}
		if err != nil {
			return nil, stopAll(ctx, all, err)
		}
	}
	return all, nil
}

func (i *Instance) awaitSync(ctx context.Context) error {
	err := poll(ctx, clusterPoll, func() (bool, error) {
		reply, err := i.Do(ctx, "INFO", "replication")
		text, _ := reply.(string)
		return infoField(text, "master_link_status") == "up", err
	})
	if err != nil {
		return fmt.Errorf("waiting for the replica %s to be in sync: %w; %s", i.Addr, err, i.logTail())
	}
	return nil
}

func infos(instances []*Instance) []Info {
	out := make([]Info, len(instances))
	for k, i := range instances {
		out[k] = i.Info
	}
	return out
}

// Listed is a server of the lab as `lab list` shows it.
type Listed struct {
	Info
	Fleet      string `json:"fleet"`      // name of `lab up`
	User       string `json:"user"`       // number of the user who started it; empty: not known
	Own        bool   `json:"own"`        // this user started it
	Persistent bool   `json:"persistent"` // started by `lab up`
	Running    bool   `json:"running"`    // its process is alive
}

// List returns the servers in the registry, oldest first.
func (f *Fleet) List() ([]Listed, error) {
	entries, err := f.Registry.Entries()
	var out []Listed
	for _, e := range entries {
		if e.Info == nil {
			continue
		}
		running := f.Registry.current(e) && f.Registry.host.alive(e.Process)
		out = append(out, Listed{
			Info: *e.Info, Fleet: e.fleet(), User: e.User, Own: e.own(), Persistent: e.Persistent, Running: running,
		})
	}
	return out, err
}

// Names are those by which `lab up` of this user has made something, also what it was killed at.
func (f *Fleet) Names() ([]string, error) {
	entries, err := f.Registry.Entries()
	var names []string
	for _, e := range entries {
		if e.Persistent && e.own() && !slices.Contains(names, e.fleet()) {
			names = append(names, e.fleet())
		}
	}
	return names, err
}

// Down removes what `lab up` of this user made under the given names. It returns the servers it stopped.
func (f *Fleet) Down(ctx context.Context, names ...string) ([]Info, error) {
	removed, err := f.Registry.Down(ctx, names...)
	var out []Info
	for _, e := range removed {
		if e.Info != nil {
			out = append(out, *e.Info)
		}
	}
	return out, err
}
