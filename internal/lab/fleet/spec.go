package fleet

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/lab/servers"
)

// Spec says how a server is to run. The zero value is a server on a free port of 127.0.0.1 without persistence or
// password.
type Spec struct {
	Bind       string   // address to listen on; empty means 127.0.0.1
	Port       int      // first one; 0 means free ones below 55000, whose cluster bus ports (+10000) are free too
	Config     []string // lines of redis.conf, which come last and so override others
	AOF        bool     // appendonly yes
	TLS        bool     // the port speaks TLS only; a CA and a certificate are made for it
	RSA        int      // with TLS: bits of the certificate's RSA key; 0: it is an ECDSA key
	Password   string   // of the default user, and for replication
	ACL        []string // lines "user NAME RULE…" (Redis ≥ 6.0)
	UnixSocket bool     // listen on a Unix socket too

	CgroupProcs []string // files cgroup.procs (or tasks) that the process joins before it is executed
	CPUs        []int    // run on these CPUs only
	Nice        int      // is added to that of the lab: -20 … 19
	// run in this network namespace (`ip netns`); implies UnixSocket, by which the lab connects
	NetNS string

	// Log takes what the server writes to its standard output and error, instead of a file in its directory
	Log *os.File `json:"-"`

	Persistent bool   // keeps running when the lab ends, until `lab down`
	Fleet      string // name by which `lab down` finds it, if persistent; empty: DefaultName

	cluster    bool
	nodes      *MapSpec
	replicaOf  *Info
	sentinelOf *Info
}

func (s Spec) bind() string {
	if s.Bind == "" {
		return "127.0.0.1"
	}
	return s.Bind
}

// check finds errors that would be harder to understand later.
func (s Spec) check(bin servers.Binary) error {
	lines := slices.Concat(s.Config, s.ACL, []string{s.Password})
	switch {
	case s.TLS && !bin.TLS:
		return fmt.Errorf("%s is built without TLS; take another server", bin.Name)
	case net.ParseIP(s.bind()) == nil:
		return fmt.Errorf("the address to bind, %q, is not an IP address", s.Bind)
	case s.Port < 0 || s.Port > 65535 || s.cluster && s.Port > 55535:
		return fmt.Errorf("%w: %d is out of range", ErrPort, s.Port)
	case s.Nice < -20 || s.Nice > 19:
		return fmt.Errorf("nice %d is not in -20 … 19", s.Nice)
	case s.NetNS != "" && !isWord(s.NetNS):
		return fmt.Errorf("%q is not a name of a network namespace", s.NetNS)
	case slices.ContainsFunc(lines, func(l string) bool { return strings.ContainsAny(l, "\r\n\x00") }):
		return fmt.Errorf("a line of the configuration contains a line break or NUL")
	}
	for _, f := range s.CgroupProcs {
		if base := filepath.Base(f); !filepath.IsAbs(f) || base != "cgroup.procs" && base != "tasks" {
			return fmt.Errorf("%q is not the path of a cgroup.procs", f)
		}
	}
	return nil
}

// joinCgroups is a script of sh(1). Its first argument is a number n of files, the next n are files cgroup.procs to
// which it writes its pid, and the rest is a command that it executes.
const joinCgroups = `n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ > "$1" || exit 70; shift; n=$((n-1)); done; ` +
	`exec "$@"`

// argv is the command line of the server, after the commands that must run before it. Each executes the next, so that
// the pid stays the same. env(1) sets the environment of the server, since its libraries could break the commands
// before.
func (s Spec) argv(bin servers.Binary, args ...string) []string {
	var argv []string
	if len(s.CgroupProcs) > 0 {
		argv = append(argv, "sh", "-c", joinCgroups, "sh", strconv.Itoa(len(s.CgroupProcs)))
		argv = append(argv, s.CgroupProcs...)
	}
	if len(s.CPUs) > 0 {
		list := make([]string, len(s.CPUs))
		for i, c := range s.CPUs {
			list[i] = strconv.Itoa(c)
		}
		argv = append(argv, "taskset", "-c", strings.Join(list, ","))
	}
	if s.Nice != 0 {
		argv = append(argv, "nice", "-n", strconv.Itoa(s.Nice))
	}
	if s.NetNS != "" {
		argv = append(argv, "ip", "netns", "exec", s.NetNS)
	}
	argv = append(argv, asServerUser()...)
	if len(bin.Env) > 0 {
		argv = append(append(argv, "env"), bin.Env...)
	}
	return append(argv, bin.Argv(args...)...)
}
