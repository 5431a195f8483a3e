//go:build linux

package main

import (
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/agent"
	"slowpath/internal/agent/door"
	"slowpath/internal/agent/otlp"
	"slowpath/internal/agent/upload"
	"slowpath/internal/cli"
	"slowpath/internal/serving"
	"slowpath/internal/source"
	"slowpath/internal/source/tap"
)

func (a *app) serve() *cobra.Command {
	var o serving.Options
	var source sourceFlags
	c := &cobra.Command{
		Use:   "serve --data DIR [TARGET...]",
		Short: shortServe,
		Long: `serve watches servers without end, keeps the last minutes in full detail and days in numbers, and makes
an incident of each time in which calls are slow or fail: with a recording that begins before it, and the verdict that
doctor gives of it. A page, an API and /metrics show them.

A TARGET is HOST:PORT, a unix socket, or a URL; without one it is all servers that listen on this host, also those that
start later. One that cannot be reached is tried again.

SIGUSR1 begins an incident, SIGHUP reads the configuration again, SIGTERM ends the agent in good order. The
configuration is YAML, with the names of the flags and "targets"; flags win. Started as
root, serve changes to the user who owns --data, and keeps only the capabilities that a watch needs.

With --source serve watches nothing, and shows what agents have sent: the page of all hosts, which asks the questions of
slowpath fleet. --tenants gives each team a token, and shows it its own rows alone.`,
		Example: `  slowpath serve --data /var/lib/slowpath
  slowpath serve --data /var/lib/slowpath --slo p99=10ms 10.0.0.5:6379
  slowpath serve --config /etc/slowpath/slowpath.yaml --check-config
  slowpath serve --source clickhouses://ch.example:9440/slowpath
  slowpath serve --source recordings/`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed(flagPass) {
				return cli.Usagef("--pass: others can read it in ps: give --password-file FILE or REDISCLI_AUTH")
			}
			if source.name != "" {
				return a.serveSource(cmd, args, source, o.Page, o.Recordings.Bucket)
			}
			if source.tenants != "" {
				return cli.Usagef("--tenants is for --source: an agent's page has one token (--token-file)")
			}
			p := &serving.Program{Program: a.Program, AddFlags: addServeFlags}
			return serving.Run(cmd.Context(), p, &o, cmd.Flags(), args)
		},
	}
	f := c.Flags()
	addServeFlags(f, &o)
	cli.Group(f, "The page of many hosts", func() { addSourceFlags(f, &source) })
	f.StringP(flagPass, "a", "", "")
	f.Lookup(flagPass).Hidden = true
	return c
}

// addDoor adds the process of serve that other hosts reach.
func (a *app) addDoor(root *cobra.Command) {
	root.AddCommand(&cobra.Command{
		Use: door.Command, Short: "The process of serve that takes connections", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return door.Main(a.Stdin, a.Stderr, func() {
				debug.FreeOSMemory()
				agent.ReleaseProgram()
			})
		},
	})
}

// flagPass is that of other commands, which takes a password: it is refused here.
const flagPass = "pass"

func addServeFlags(f *pflag.FlagSet, o *serving.Options) {
	f.StringVar(&o.ConfigPath, "config", "", "`file` with the options, in YAML")
	f.BoolVar(&o.CheckOnly, "check-config", false, "check the options and the configuration, and end")
	addListen(f, &o.Page)
	f.StringVar(&o.Data, "data", "", "`directory` of the ring, the incidents and the history, for slowpath alone")
	f.StringVar(&o.LogFormat, "log", "text", "`format` of the log on stderr: text or json")
	cli.Group(f, "What is watched", func() {
		f.StringVar(&o.Slow, "slow", cli.SlowAuto, "a call is slow from this `duration` on; auto: 5ms, more on a "+
			"distant path")
		f.StringVar(&o.ProbeRate, "probe-rate", "1/s", "`calls` of slowpath's own per second and node")
		f.DurationVar(&o.Timeout, "timeout", source.DefaultTimeout, "for the first connection")
		f.BoolVar(&o.NoProbe, "no-probe", false, "make no calls of our own")
		f.BoolVar(&o.NoHost, "no-host", false, "read no files of this host")
		f.BoolVar(&o.NoTap, "no-tap", false, "leave the tap (eBPF) out")
		addResolve(f, &o.Resolve)
	})
	cli.Group(f, "When an incident begins and ends", func() { addTriggerFlags(f, o) })
	cli.Group(f, "Limits", func() { addLimitFlags(f, o) })
	cli.Group(f, "Who may see the page", func() { addPageFlags(f, &o.Page) })
	cli.Group(f, "OpenTelemetry", func() { addCollectorFlags(f, &o.Collector) })
	cli.Group(f, "Incidents in a bucket", func() { addRecordingsFlags(f, &o.Recordings) })
	cli.Group(f, "Who is told of incidents", func() {
		f.StringSliceVar(&o.Notify, "notify", nil, "`webhook` that is told of each incident: https://..., "+
			"slack+https://..., alertmanager+https://HOST:9093, or @FILE with it")
		f.BoolVar(&o.NotifyPlain, "notify-plain", false, "webhooks of other hosts may be http://")
	})
	addServeWhereFlags(f, o)
}

func addTriggerFlags(f *pflag.FlagSet, o *serving.Options) {
	f.StringSliceVar(&o.Goals, "slo", nil, "a `goal` such as p99=10ms: an incident begins when more calls of a server "+
		"take longer")
	f.StringSliceVar(&o.Off, "no-trigger", nil, "begin no incidents by this `trigger`: "+
		strings.Join(agent.Kinds(), ", "))
	f.DurationVar(&o.Before, "before", agent.DefaultBefore, "how much before its first slow call a recording has")
	f.DurationVar(&o.After, "after", agent.DefaultAfter, "how long an incident is watched at least")
	f.DurationVar(&o.Longest, "longest", agent.DefaultLongest, "and at most, for its recording")
	f.DurationVar(&o.CoolDown, "cool-down", agent.DefaultCoolDown, "a slow call within this time after an incident "+
		"belongs to it")
}

func addLimitFlags(f *pflag.FlagSet, o *serving.Options) {
	o.MaxDisk, o.Memory = agent.DefaultMaxDisk, agent.DefaultMemory
	o.MaxAge, o.History = cli.Days(agent.DefaultMaxAge), cli.Days(agent.DefaultHistoryKeep)
	f.Float64Var(&o.CPUBudget, "cpu-budget", agent.DefaultCPUBudget*100, "CPU time of slowpath itself, in `percent` "+
		"of a core: above, it watches less and says so; 0: no limit")
	addTapBudget(f, &o.TapBudget)
	addEnd(f, &o.End)
	f.IntVar(&o.Connections, "tap-connections", tap.DefaultConnections, "ends of connections that the tap follows at "+
		"a time")
	f.Var(&o.Memory, "memory", "of slowpath itself")
	f.Var(&o.MaxDisk, "max-disk", "of all that is kept in --data")
	f.DurationVar(&o.Ring, "ring", agent.DefaultRingKeep, "how much is kept in full detail, at most")
	f.Var(&o.MaxAge, "max-age", "of incidents")
	f.Var(&o.History, "history", "how long the latencies of each minute are kept")
}

func addCollectorFlags(f *pflag.FlagSet, c *serving.Collector) {
	c.BytesPerDay = otlp.DefaultBytesPerDay
	f.StringVar(&c.URL, "otlp", "", "`collector` that slow calls are pushed to as spans, and what /metrics has: "+
		"grpcs://HOST:4317, https://HOST:4318")
	f.StringVar(&c.Cluster, "cluster-name", "", "`name` of what this host belongs to: calls between hosts of one name "+
		"are one trace, and their recordings have one place")
	f.StringVar(&c.Files.Headers, "otlp-headers", "", "`file` with lines \"Name: value\", such as a token")
	f.StringVar(&c.Files.CA, "otlp-ca", "", "`file` with the CA certificates of the collector")
	f.StringVar(&c.Files.Cert, "otlp-cert", "", "client certificate `file` for it")
	f.StringVar(&c.Files.Key, "otlp-key", "", "its key `file`")
	f.BoolVar(&c.Plain, "otlp-plain", false, "a collector on another host may be without TLS")
	f.DurationVar(&c.Interval, "otlp-interval", otlp.DefaultInterval, "between two pushes of metrics")
	f.IntVar(&c.SpansPerMinute, "otlp-spans-per-minute", otlp.DefaultSpansPerMinute, "of how many slow calls "+
		"spans are made at most, five times as many in an incident; -1: none")
	f.Var(&c.BytesPerDay, "otlp-bytes-per-day", "how much is pushed at most; 0: no limit")
}

func addRecordingsFlags(f *pflag.FlagSet, r *serving.Recordings) {
	b := &r.Bucket
	r.BytesPerDay, b.Flags = upload.DefaultBytesPerDay, "--recordings"
	f.StringVar(&r.URL, "recordings", "", "`bucket` that incidents are written into, with their recordings: "+
		"s3://BUCKET/PREFIX")
	addRecordingsPlace(f, b)
	f.Var(&r.BytesPerDay, "recordings-bytes-per-day", "how much is written at most; 0: no limit")
}

func addServeWhereFlags(f *pflag.FlagSet, o *serving.Options) {
	own := cli.OwnFlags(f)
	w := &o.Where
	f.StringVar(&w.User, "user", "", "`user` name for AUTH")
	f.StringVar(&o.PasswordFile, "password-file", "", "`file` with the password; or set REDISCLI_AUTH")
	addTLSFlags(f, w)
	f.BoolVarP(&w.Cluster, "cluster", "c", false, "give the password to all nodes of a cluster, wherever they are")
	f.BoolVarP(&w.RESP2, "resp2", "2", false, "speak RESP2")
	f.BoolVarP(&w.RESP3, "resp3", "3", false, "speak RESP3")
	cli.Mark(f, own)
}
