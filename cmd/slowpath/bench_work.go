//go:build linux

package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/load/engine"
	"slowpath/internal/load/workload"
)

// workFlags say what a load sends.
type workFlags struct {
	commands  []string
	ratios    []string
	keys      string
	dist      string
	keyPrefix string
	size      string
	data      string
	expire    time.Duration
	dangerous bool
	given     *pflag.FlagSet
}

func (f *workFlags) add(fl *pflag.FlagSet) {
	f.given = fl
	fl.StringArrayVar(&f.commands, "command", []string{"get"}, "`command` to send, again for a mix: a name such as "+
		"get, set, incr, or a template such as 'SET key:{key} {value}'")
	fl.StringArrayVar(&f.ratios, "ratio", nil, "`share` of the command before it in a mix, again for each (default: "+
		"all alike); or SET:GET as in memtier_benchmark: 1:9")
	fl.StringVar(&f.keys, "keys", "1m", "`number` of keys to draw from, or a range FROM-TO; k, m, g")
	fl.StringVar(&f.dist, "key-distribution", "uniform", "`how` keys are drawn: uniform, zipf[:EXPONENT], latest, "+
		"gaussian, sequential")
	fl.StringVar(&f.keyPrefix, "key-prefix", "", "`text` that follows slowpath: in each key, to tell loads apart")
	fl.StringVar(&f.size, "value-size", "3", "`bytes` of values: 100, 100-1000, lognormal:MEDIAN,SIGMA, 100:3,1k:1, "+
		"file:PATH")
	fl.StringVar(&f.data, "value-data", "random", "`what` values hold: random, compressible:SHARE%, zero, file:PATH")
	fl.DurationVar(&f.expire, "expire", 0, "`time` to live of what SET writes (default none)")
	fl.BoolVar(&f.dangerous, "dangerous", false, "allow commands that harm a server or the data of "+
		"others, and scripts on a server that holds keys")
}

// spellOut turns --ratio SET:GET into the commands and their shares; a share of 0 leaves its command out.
func (f *workFlags) spellOut() error {
	if len(f.ratios) != 1 || !strings.Contains(f.ratios[0], ":") {
		return nil
	}
	text := f.ratios[0]
	if f.given.Changed("command") {
		return cli.Usagef("--ratio %s is SET:GET: leave out --command, or give a --ratio for each command", text)
	}
	f.commands, f.ratios = nil, nil
	set, get, _ := strings.Cut(text, ":")
	for _, part := range []struct{ command, share string }{{"set", set}, {"get", get}} {
		share, err := strconv.ParseUint(part.share, 10, 32)
		if err != nil {
			return cli.Usagef("--ratio %q: give SET:GET in whole numbers, such as 1:9", text)
		}
		if share > 0 {
			f.commands, f.ratios = append(f.commands, part.command), append(f.ratios, part.share)
		}
	}
	if len(f.commands) == 0 {
		return cli.Usagef("--ratio %s: one of the two must be above 0", text)
	}
	return nil
}

// keyRange is the keys, and how they are drawn.
func (f *workFlags) keyRange() (workload.Keys, error) {
	keys, err := workload.ParseKeys(f.keys)
	if err != nil {
		return keys, cli.Usagef("--keys: %w", err)
	}
	if keys, err = keys.ParseDist(f.dist); err != nil {
		return keys, cli.Usagef("--key-distribution: %w", err)
	}
	return keys, nil
}

// readValues reads a file of values or of their sizes.
func readValues(path string) ([]byte, error) { return cli.ReadNamed(path, workload.MaxValueBytes) }

// compile makes the workload.
func (f *workFlags) compile(l *engine.Options) (*workload.Workload, error) {
	o := workload.Options{
		Commands: f.commands, KeyPrefix: f.keyPrefix, Expire: f.expire, Dangerous: f.dangerous,
		Seed: l.Seed, Cluster: l.Cluster, Verify: l.Verify,
	}
	for _, text := range f.ratios {
		r, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, cli.Usagef("--ratio %q: give a number above 0", text)
		}
		o.Ratios = append(o.Ratios, r)
	}
	var err error
	if o.Keys, err = f.keyRange(); err != nil {
		return nil, err
	}
	if o.Sizes, err = workload.ParseSizes(f.size, readValues); err != nil {
		return nil, cli.Usagef("--value-size: %w", err)
	}
	if o.Content, err = workload.ParseContent(f.data, readValues); err != nil {
		return nil, cli.Usagef("--value-data: %w", err)
	}
	w, err := workload.Compile(o)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return w, nil
}

// said is the flags as they were given, for the result.
func (f *workFlags) said() any {
	return struct {
		Commands     []string `json:"commands"`
		Ratios       []string `json:"ratios,omitempty"`
		Keys         string   `json:"keys"`
		Distribution string   `json:"key_distribution"`
		KeyPrefix    string   `json:"key_prefix,omitempty"`
		ValueSize    string   `json:"value_size"`
		ValueData    string   `json:"value_data"`
		ExpireNs     int64    `json:"expire_ns,omitempty"`
	}{f.commands, f.ratios, f.keys, f.dist, f.keyPrefix, f.size, f.data, int64(f.expire)}
}
