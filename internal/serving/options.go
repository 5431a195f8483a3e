//go:build linux

package serving

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"slowpath/internal/agent"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/agent/notify"
	"slowpath/internal/agent/otlp"
	"slowpath/internal/agent/web"
	"slowpath/internal/bucket"
	"slowpath/internal/cli"
	"slowpath/internal/source"
	"slowpath/internal/source/tap"
	"slowpath/internal/wire/target"
)

// Options are the flags of serve, each of which may be in its configuration file, too, but for the first two.
type Options struct {
	ConfigPath string
	CheckOnly  bool

	Targets         []string // by the command line, else by the file
	Data, LogFormat string

	Where        target.Options
	PasswordFile string

	Slow, ProbeRate                 string
	Timeout                         time.Duration
	NoProbe, NoHost, NoTap, Resolve bool
	Connections                     int     // of the tap, at a time
	End                             string  // of connections, the only one that is seen; empty: both
	TapBudget                       float64 // percent of a core

	Goals, Off                       []string
	Before, After, Longest, CoolDown time.Duration

	CPUBudget       float64 // percent of a core
	Memory, MaxDisk cli.Size
	Ring            time.Duration
	MaxAge, History cli.Days

	Page        Page
	Notify      []string
	NotifyPlain bool
	Collector   Collector
	Recordings  Recordings
}

// Collector are the flags of what is pushed to one.
type Collector struct {
	URL            string
	Cluster        string
	Files          otlp.Files
	Plain          bool
	Interval       time.Duration
	SpansPerMinute int
	BytesPerDay    cli.Size
}

// Recordings are the flags of the bucket that incidents are written into.
type Recordings struct {
	URL         string
	Bucket      bucket.Options
	BytesPerDay cli.Size
}

// checked is what flags and configuration say.
type checked struct {
	*Options
	settings agent.Settings
	page     web.Options // who may see it
	notified []notify.Receiver
	pushed   *otlp.Options  // nil: nothing
	bucket   *bucket.Bucket // nil: nothing is written into one
}

// check checks the flags.
func (o *Options) check(a *cli.Program) (*checked, error) {
	if o.Data == "" {
		return nil, cli.Usagef("serve needs a directory for what it keeps: add --data DIR, such as /var/lib/slowpath")
	}
	settings, err := o.agentSettings(a.Env)
	if err != nil {
		return nil, err
	}
	out := &checked{Options: o, settings: settings}
	if out.page, err = o.Page.options(); err != nil {
		return nil, err
	}
	for _, text := range o.Notify {
		r, err := notify.Parse(text, o.NotifyPlain)
		if err != nil {
			return nil, cli.Usagef("--notify: %w", err)
		}
		out.notified = append(out.notified, r)
	}
	if out.pushed, err = o.Collector.options(a.Version); err != nil || o.Recordings.URL == "" {
		return out, err
	}
	if out.bucket, err = bucket.Open(o.Recordings.URL, o.Recordings.Bucket); err != nil {
		return nil, cli.Usagef("--recordings: %w", err)
	}
	return out, nil
}

// agentSettings are what the agent is to do.
func (o *Options) agentSettings(env func(string) string) (agent.Settings, error) {
	out := agent.Settings{
		Named: o.Targets, RingKeep: o.Ring, HistoryKeep: time.Duration(o.History),
		Incidents: incidents.Limits{MaxAge: time.Duration(o.MaxAge)},
		Before:    o.Before, After: o.After, Longest: o.Longest, CoolDown: o.CoolDown,
		CPUBudget: o.CPUBudget / 100, Memory: int64(o.Memory), Off: map[agent.Kind]bool{},
	}
	out.DivideDisk(int64(o.MaxDisk))
	for _, step := range []func(*agent.Settings) error{o.fillWatch, o.fillTriggers, (*agent.Settings).Check} {
		if err := step(&out); err != nil {
			return out, cli.Usage(err)
		}
	}
	return out, o.fillTargets(&out, env)
}

func (o *Options) fillWatch(out *agent.Settings) error {
	if _, err := cli.ParseSlow(o.Slow); err != nil {
		return err
	}
	rate, err := cli.ParseRate(o.ProbeRate)
	if err != nil {
		return cli.Usagef("--probe-rate %q: %w", o.ProbeRate, err)
	}
	if err := cli.Positive("timeout", o.Timeout); err != nil {
		return err
	}
	if err := cli.CheckEnd(o.End); err != nil {
		return err
	}
	if o.Connections < 1 || o.Connections > tap.MaxConnections {
		return cli.Usagef("--tap-connections %d: give a number from 1 to %d", o.Connections, tap.MaxConnections)
	}
	part, err := cli.TapBudget(o.TapBudget)
	out.Watch = source.Options{
		Slow: o.Slow, NoProbe: o.NoProbe, NoHost: o.NoHost, NoTap: o.NoTap, ProbeRate: rate, Timeout: o.Timeout,
		Resolve: o.Resolve, Sparing: true, Connections: o.Connections, End: o.End, TapBudget: part,
		Cluster: o.Where.Cluster,
	}
	return err
}

func (o *Options) fillTriggers(out *agent.Settings) error {
	for _, text := range o.Goals {
		g, err := agent.ParseGoal(text)
		if err != nil {
			return fmt.Errorf("--slo %w", err)
		}
		out.Goals = append(out.Goals, g)
	}
	for _, kind := range o.Off {
		if !slices.Contains(agent.Kinds(), kind) {
			return fmt.Errorf("--no-trigger %q%s: give one of %s", kind, cli.DidYouMean(kind, agent.Kinds()),
				strings.Join(agent.Kinds(), ", "))
		}
		out.Off[agent.Kind(kind)] = true
	}
	if o.LogFormat != "text" && o.LogFormat != "json" {
		return fmt.Errorf("--log %q: give text or json", o.LogFormat)
	}
	return nil
}

// fillTargets reads the password, and checks the servers that are named.
func (o *Options) fillTargets(out *agent.Settings, env func(string) string) error {
	where := o.Where
	if o.PasswordFile != "" {
		password, err := readSecret("password-file", o.PasswordFile)
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

// options are those of the exporter; nil: nothing is pushed.
func (c *Collector) options(version string) (*otlp.Options, error) {
	if c.URL == "" {
		return nil, nil
	}
	to, err := otlp.Parse(c.URL, c.Files, c.Plain)
	out := &otlp.Options{
		Endpoint: to, Cluster: c.Cluster, Version: version, Interval: c.Interval, SpansPerMinute: c.SpansPerMinute,
		BytesPerDay: int64(c.BytesPerDay),
	}
	if c.BytesPerDay == 0 {
		out.BytesPerDay = -1 // no limit
	}
	if err == nil {
		err = out.Validate()
	}
	if err != nil {
		return nil, cli.Usage(errors.New("--otlp: " + strings.TrimPrefix(err.Error(), "otlp: ")))
	}
	return out, nil
}
