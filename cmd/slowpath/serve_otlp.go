//go:build linux

package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"slowpath/internal/agent/otlp"
	"slowpath/internal/cli"
)

// serveOTLP are the flags of the collector.
type serveOTLP struct {
	to             string
	files          otlp.Files
	plain          bool
	interval       time.Duration
	spansPerMinute int
	bytesPerDay    cli.Size
}

func (o *serveOTLP) add(f *pflag.FlagSet) {
	o.bytesPerDay = otlp.DefaultBytesPerDay
	f.StringVar(&o.to, "otlp", "", "`collector` that slow calls are pushed to as traces, and what /metrics has: "+
		"grpcs://HOST:4317, https://HOST:4318")
	f.StringVar(&o.files.Headers, "otlp-headers", "", "`file` with lines \"Name: value\", such as a token")
	f.StringVar(&o.files.CA, "otlp-ca", "", "`file` with the CA certificates of the collector")
	f.StringVar(&o.files.Cert, "otlp-cert", "", "client certificate `file` for it")
	f.StringVar(&o.files.Key, "otlp-key", "", "its key `file`")
	f.BoolVar(&o.plain, "otlp-plain", false, "a collector on another host may be without TLS")
	f.DurationVar(&o.interval, "otlp-interval", otlp.DefaultInterval, "between two pushes of metrics")
	f.IntVar(&o.spansPerMinute, "otlp-spans-per-minute", otlp.DefaultSpansPerMinute, "how many slow calls become "+
		"traces at most; -1: none")
	f.Var(&o.bytesPerDay, "otlp-bytes-per-day", "how much is pushed at most; 0: no limit")
}

// options are those of the exporter; nil: nothing is pushed.
func (o *serveOTLP) options() (*otlp.Options, error) {
	if o.to == "" {
		return nil, nil
	}
	to, err := otlp.Parse(o.to, o.files, o.plain)
	out := &otlp.Options{
		Endpoint: to, Version: version, Interval: o.interval, SpansPerMinute: o.spansPerMinute,
		BytesPerDay: int64(o.bytesPerDay),
	}
	if o.bytesPerDay == 0 {
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
