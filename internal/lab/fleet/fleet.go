// Package fleet starts and stops real servers for the lab: single ones, replicas and clusters, each with its data in a
// directory of its own, optionally with TLS, in cgroups, on given CPUs or in a network namespace. Those of root run as
// ServerUser.
//
// Everything is recorded in a Registry of small files before it is made, so that the next lab removes what a killed lab
// left, and nothing else: a process is identified by its pid and its start time.
package fleet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"slowpath/internal/lab/servers"
)

// Fleet starts servers and records them in its registry.
type Fleet struct {
	Registry *Registry
	tmp      string // where data directories are made
}

// New returns a fleet on a registry. Data directories are made in TempDir.
func New(r *Registry) (*Fleet, error) {
	tmp, err := TempDir()
	if err != nil {
		return nil, err
	}
	return &Fleet{Registry: r, tmp: tmp}, nil
}

// Timeouts for contexts without a deadline.
const (
	startTimeout   = 30 * time.Second
	clusterTimeout = 90 * time.Second
)

func withDefaultTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

// DefaultName is the name of what `lab up` starts without one.
const DefaultName = "default"

// nameLimit bounds the names of `lab up`, in bytes.
const nameLimit = 32

// CheckName refuses what is no name for `lab up`.
func CheckName(name string) error {
	if !isWord(name) || len(name) > nameLimit {
		return fmt.Errorf("%q is not a name: give up to %d letters, digits and -_. that begin with a letter or digit",
			name, nameLimit)
	}
	return nil
}

// dirPrefix marks the directories of the lab; nothing else is ever removed recursively.
const dirPrefix = "slowpath-"

// newID is 48 random bits in hex: for names of entries, groups and directories.
func newID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// poll calls done every interval until it returns true or an error, or the context ends.
func poll(ctx context.Context, interval time.Duration, done func() (bool, error)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Info describes a server that was started. The registry keeps it for `lab list`. It has no password.
type Info struct {
	Group   string       `json:"group"` // what was started together
	Server  servers.Name `json:"server"`
	Version string       `json:"version"` // as INFO says
	Role    string       `json:"role"`    // standalone, master or replica, as started
	Cluster bool         `json:"cluster"`
	Addr    string       `json:"address"` // HOST:PORT
	Port    int          `json:"port"`
	PID     int          `json:"pid"`
	Dir     string       `json:"dir"`
	LogPath string       `json:"log"`
	Socket  string       `json:"socket,omitempty"` // Unix socket
	TLS     bool         `json:"tls"`
	CACert  string       `json:"ca_cert,omitempty"` // file, PEM
	Cert    string       `json:"cert,omitempty"`
	Key     string       `json:"key,omitempty"`
	NetNS   string       `json:"netns,omitempty"`
}
