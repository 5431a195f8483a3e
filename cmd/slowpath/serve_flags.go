//go:build linux

package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"slowpath/internal/agent"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/cli"
	"slowpath/internal/source"
	"slowpath/internal/source/tap"
	"slowpath/internal/wire/target"
)

// serveFlags are the flags of serve, each of which may be in its configuration file, too.
type serveFlags struct {
	listen, data string
	logFormat    string

	where        target.Options
	passwordFile string

	slow        string
	probeRate   string
	timeout     time.Duration
	noProbe     bool
	noHost      bool
	noTap       bool
	connections int
	tapBudget   float64 // percent of a core

	goals    []string
	off      []string
	before   time.Duration
	after    time.Duration
	longest  time.Duration
	coolDown time.Duration

	ring    time.Duration
	maxDisk cli.Size
	maxAge  cli.Days
	history cli.Days

	cpuBudget float64
	memory    cli.Size

	web         serveWeb
	notify      []string
	notifyPlain bool
	otlp        serveOTLP
}

// serveWeb are the flags of the page.
type serveWeb struct {
	tokenFile, cert, key string
	hostNames            []string
	allowWrites          bool
}

// Flags of serve that its configuration file has not.
const (
	flagConfig      = "config"
	flagCheckConfig = "check-config"
)

func (s *serveFlags) add(f *pflag.FlagSet) {
	f.StringVar(&s.listen, "listen", defaultListen, "`address` of the page and of /metrics; other hosts need a token "+
		"and TLS")
	f.StringVar(&s.data, "data", "", "`directory` of the ring, the incidents and the history, for slowpath alone")
	f.StringVar(&s.logFormat, "log", "text", "`format` of the log on stderr: text or json")
	cli.Group(f, "What is watched", func() {
		f.StringVar(&s.slow, "slow", cli.SlowAuto, "a call is slow from this `duration` on; auto: 5ms, more on a "+
			"distant path")
		f.StringVar(&s.probeRate, "probe-rate", "1/s", "`calls` of slowpath's own per second and node")
		f.DurationVar(&s.timeout, "timeout", source.DefaultTimeout, "for the first connection")
		f.BoolVar(&s.noProbe, "no-probe", false, "make no calls of our own")
		f.BoolVar(&s.noHost, "no-host", false, "read no files of this host")
		f.BoolVar(&s.noTap, "no-tap", false, "leave the tap (eBPF) out")
	})
	cli.Group(f, "When an incident begins and ends", func() { s.addTriggers(f) })
	cli.Group(f, "Limits", func() { s.addLimits(f) })
	cli.Group(f, "Who may see the page", func() {
		f.StringVar(&s.web.tokenFile, "token-file", "", "`file` with a token of 16 characters or more, which others "+
			"give to see anything")
		f.StringVar(&s.web.cert, "tls-cert", "", "certificate `file` of the page")
		f.StringVar(&s.web.key, "tls-key", "", "its key `file`")
		f.StringSliceVar(&s.web.hostNames, "host-name", nil, "another `name` at which browsers reach the page, such "+
			"as that of a proxy in front")
		f.BoolVar(&s.web.allowWrites, "allow-writes", false, "others may mark times and begin incidents, too")
	})
	cli.Group(f, "OpenTelemetry", func() { s.otlp.add(f) })
	cli.Group(f, "Who is told of incidents", func() {
		f.StringSliceVar(&s.notify, "notify", nil, "`webhook` that is told of each incident: https://..., "+
			"slack+https://..., alertmanager+https://HOST:9093, or @FILE with it")
		f.BoolVar(&s.notifyPlain, "notify-plain", false, "webhooks of other hosts may be http://")
	})
	s.addWhere(f)
}

const defaultListen = "127.0.0.1:7380"

func (s *serveFlags) addTriggers(f *pflag.FlagSet) {
	f.StringSliceVar(&s.goals, "slo", nil, "a `goal` such as p99=10ms: an incident begins when more calls of a server "+
		"take longer")
	f.StringSliceVar(&s.off, "no-trigger", nil, "begin no incidents by this `trigger`: "+
		strings.Join(agent.Kinds(), ", "))
	f.DurationVar(&s.before, "before", agent.DefaultBefore, "how much before its first slow call a recording has")
	f.DurationVar(&s.after, "after", agent.DefaultAfter, "how long an incident is watched at least")
	f.DurationVar(&s.longest, "longest", agent.DefaultLongest, "and at most, for its recording")
	f.DurationVar(&s.coolDown, "cool-down", agent.DefaultCoolDown, "what begins so soon after an incident is part of "+
		"it")
}

func (s *serveFlags) addLimits(f *pflag.FlagSet) {
	s.maxDisk, s.memory = agent.DefaultMaxDisk, agent.DefaultMemory
	s.maxAge, s.history = cli.Days(agent.DefaultMaxAge), cli.Days(agent.DefaultHistoryKeep)
	f.Float64Var(&s.cpuBudget, "cpu-budget", agent.DefaultCPUBudget*100, "CPU time of slowpath itself, in `percent` "+
		"of a core: above, it watches less and says so; 0: no limit")
	addTapBudget(f, &s.tapBudget)
	f.IntVar(&s.connections, "tap-connections", tap.DefaultConnections, "ends of connections that the tap follows at "+
		"a time")
	f.Var(&s.memory, "memory", "of slowpath itself")
	f.Var(&s.maxDisk, "max-disk", "of all that is kept in --data")
	f.DurationVar(&s.ring, "ring", agent.DefaultRingKeep, "how much is kept in full detail, at most")
	f.Var(&s.maxAge, "max-age", "of incidents")
	f.Var(&s.history, "history", "how long the latencies of each minute are kept")
}

func (s *serveFlags) addWhere(f *pflag.FlagSet) {
	own := map[string]bool{}
	for _, name := range cli.FlagNames(f) {
		own[name] = true
	}
	o := &s.where
	f.StringVar(&o.User, "user", "", "`user` name for AUTH")
	f.StringVar(&s.passwordFile, "password-file", "", "`file` with the password; or set REDISCLI_AUTH")
	f.BoolVar(&o.TLS, "tls", false, "connect with TLS")
	f.StringVar(&o.SNI, "sni", "", "server `name` for TLS")
	f.StringVar(&o.CACert, "cacert", "", "`file` with the CA certificates to trust")
	f.StringVar(&o.Cert, "cert", "", "client certificate `file`")
	f.StringVar(&o.Key, "key", "", "client key `file`")
	f.BoolVar(&o.Insecure, "insecure", false, "accept any certificate")
	f.BoolVarP(&o.Cluster, "cluster", "c", false, "give the password to all nodes of a cluster, wherever they are")
	f.BoolVarP(&o.RESP2, "resp2", "2", false, "speak RESP2")
	f.BoolVarP(&o.RESP3, "resp3", "3", false, "speak RESP3")
	cli.Mark(f, own)
}

// settings checks the flags and gives what the agent is to do.
func (s *serveFlags) settings(named []string, env func(string) string) (agent.Settings, error) {
	out := agent.Settings{
		Named: named, RingKeep: s.ring, HistoryKeep: time.Duration(s.history),
		Incidents: incidents.Limits{MaxAge: time.Duration(s.maxAge)},
		Before:    s.before, After: s.after, Longest: s.longest, CoolDown: s.coolDown,
		CPUBudget: s.cpuBudget / 100, Memory: int64(s.memory), Off: map[agent.Kind]bool{},
	}
	out.DivideDisk(int64(s.maxDisk))
	for _, step := range []func(*agent.Settings) error{s.fillWatch, s.fillTriggers, (*agent.Settings).Check} {
		if err := step(&out); err != nil {
			return out, cli.Usage(err)
		}
	}
	return out, s.fillTargets(&out, env)
}

func (s *serveFlags) fillWatch(out *agent.Settings) error {
	if _, err := cli.ParseSlow(s.slow); err != nil {
		return err
	}
	rate, err := cli.ParseRate(s.probeRate)
	if err != nil {
		return cli.Usagef("--probe-rate %q: %w", s.probeRate, err)
	}
	if err := cli.Positive("timeout", s.timeout); err != nil {
		return err
	}
	if s.connections < 1 || s.connections > tap.MaxConnections {
		return cli.Usagef("--tap-connections %d: give a number from 1 to %d", s.connections, tap.MaxConnections)
	}
	part, err := cli.TapBudget(s.tapBudget)
	out.Watch = source.Options{
		Slow: s.slow, NoProbe: s.noProbe, NoHost: s.noHost, NoTap: s.noTap, ProbeRate: rate, Timeout: s.timeout,
		Sparing: true, Connections: s.connections, TapBudget: part, Cluster: s.where.Cluster,
	}
	return err
}

func (s *serveFlags) fillTriggers(out *agent.Settings) error {
	for _, text := range s.goals {
		g, err := agent.ParseGoal(text)
		if err != nil {
			return fmt.Errorf("--slo %w", err)
		}
		out.Goals = append(out.Goals, g)
	}
	for _, kind := range s.off {
		if !slices.Contains(agent.Kinds(), kind) {
			return fmt.Errorf("--no-trigger %q%s: give one of %s", kind, cli.DidYouMean(kind, agent.Kinds()),
				strings.Join(agent.Kinds(), ", "))
		}
		out.Off[agent.Kind(kind)] = true
	}
	if s.logFormat != "text" && s.logFormat != "json" {
		return fmt.Errorf("--log %q: give text or json", s.logFormat)
	}
	return nil
}

// fillTargets reads the password, and checks the servers that are named.
func (s *serveFlags) fillTargets(out *agent.Settings, env func(string) string) error {
	where := s.where
	if s.passwordFile != "" {
		password, err := readSecret("password-file", s.passwordFile)
		if err != nil {
			return err
		}
		where.Password = password
	}
	for _, name := range out.Named {
		if u, err := url.Parse(name); err == nil && u.User != nil {
			if _, has := u.User.Password(); has {
				return cli.Usagef("the URL of a server has a password, which others can read: leave it out, and give " +
					"--password-file FILE or REDISCLI_AUTH")
			}
		}
	}
	out.Targets = func(addresses []string) ([]target.Target, error) { return where.Targets(addresses, env) }
	if len(out.Named) == 0 {
		return nil
	}
	_, err := out.Targets(out.Named)
	return usageOf(err)
}

func usageOf(err error) error {
	if err == nil {
		return nil
	}
	return cli.Usage(err)
}

// mostSecretBytes bounds a file that holds a password or a token.
const mostSecretBytes = 4 << 10

// readSecret reads a password or token: the one line of a file.
func readSecret(flag, path string) (string, error) {
	text, err := cli.ReadNamed(path, mostSecretBytes)
	if err != nil {
		return "", cli.Usagef("--%s: %w", flag, err)
	}
	line, rest, _ := strings.Cut(string(text), "\n")
	line = strings.TrimSuffix(line, "\r")
	if line == "" || strings.TrimSpace(rest) != "" {
		return "", cli.Usagef("--%s %s: give a file of one line", flag, path)
	}
	return line, nil
}
