//go:build linux

package benching

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/load/engine"
	"slowpath/internal/load/workload"
)

// Work say what a load sends.
type Work struct {
	Commands  []string
	Ratios    []string
	Keys      string
	Dist      string
	KeyPrefix string
	Size      string
	Data      string
	Expire    time.Duration
	Dangerous bool
	Given     *pflag.FlagSet
}

// SpellOut turns --ratio SET:GET into the commands and their shares; a share of 0 leaves its command out.
func (f *Work) SpellOut() error {
	if len(f.Ratios) != 1 || !strings.Contains(f.Ratios[0], ":") {
		return nil
	}
	text := f.Ratios[0]
	if f.Given.Changed("command") {
		return cli.Usagef("--ratio %s is SET:GET: leave out --command, or give a --ratio for each command", text)
	}
	f.Commands, f.Ratios = nil, nil
	set, get, _ := strings.Cut(text, ":")
	for _, part := range []struct{ command, share string }{{"set", set}, {"get", get}} {
		share, err := strconv.ParseUint(part.share, 10, 32)
		if err != nil {
			return cli.Usagef("--ratio %q: give SET:GET in whole numbers, such as 1:9", text)
		}
		if share > 0 {
			f.Commands, f.Ratios = append(f.Commands, part.command), append(f.Ratios, part.share)
		}
	}
	if len(f.Commands) == 0 {
		return cli.Usagef("--ratio %s: one of the two must be above 0", text)
	}
	return nil
}

// keyRange is the keys, and how they are drawn.
func (f *Work) keyRange() (workload.Keys, error) {
	keys, err := workload.ParseKeys(f.Keys)
	if err != nil {
		return keys, cli.Usagef("--keys: %w", err)
	}
	if keys, err = keys.ParseDist(f.Dist); err != nil {
		return keys, cli.Usagef("--key-distribution: %w", err)
	}
	return keys, nil
}

// readValues reads a file of values or of their sizes.
func readValues(path string) ([]byte, error) { return cli.ReadNamed(path, workload.MaxValueBytes) }

// compile makes the workload.
func (f *Work) compile(l *engine.Options) (*workload.Workload, error) {
	o := workload.Options{
		Commands: f.Commands, KeyPrefix: f.KeyPrefix, Expire: f.Expire, Dangerous: f.Dangerous,
		Seed: l.Seed, Cluster: l.Cluster, Verify: l.Verify,
	}
	for _, text := range f.Ratios {
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
	if o.Sizes, err = workload.ParseSizes(f.Size, readValues); err != nil {
		return nil, cli.Usagef("--value-size: %w", err)
	}
	if o.Content, err = workload.ParseContent(f.Data, readValues); err != nil {
		return nil, cli.Usagef("--value-data: %w", err)
	}
	w, err := workload.Compile(o)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return w, nil
}

// said is the flags as they were given, for the result.
func (f *Work) said() any {
	return struct {
		Commands     []string `json:"commands"`
		Ratios       []string `json:"ratios,omitempty"`
		Keys         string   `json:"keys"`
		Distribution string   `json:"key_distribution"`
		KeyPrefix    string   `json:"key_prefix,omitempty"`
		ValueSize    string   `json:"value_size"`
		ValueData    string   `json:"value_data"`
		ExpireNs     int64    `json:"expire_ns,omitempty"`
	}{f.Commands, f.Ratios, f.Keys, f.Dist, f.KeyPrefix, f.Size, f.Data, int64(f.Expire)}
}
