package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"slowpath/internal/cli"
	"slowpath/internal/manyhosts"
)

// openPrometheus reads the numbers of the time that is asked into an index of the moment.
func (a *app) openPrometheus(ctx context.Context, f *fleetFlags, question string, sources []string) (*manyhosts.Folder,
	error,
) {
	if len(sources) > 1 {
		return nil, cli.Usagef("%s: ask Prometheus alone, without other sources", strings.Join(sources, " "))
	}
	q, _ := manyhosts.QuestionOf(question) // doctor is none
	if !q.Numbers {
		return nil, cli.Usagef("Prometheus has numbers alone, which do not answer %s: ask the directory, the bucket "+
			"or ClickHouse to which the agents write", question)
	}
	p, err := manyhosts.NewPrometheus(sources[0], manyhosts.PrometheusOptions{
		Token: a.Env("PROMETHEUS_TOKEN"), Headers: f.bucket.Credentials, CA: f.bucket.CA, Plain: f.bucket.Plain,
	})
	if err != nil {
		return nil, cli.Usagef("%s: %w", sources[0], err)
	}
	defer p.Close()
	if err := f.lately(); err != nil {
		return nil, err
	}
	dir, _, err := a.ScratchPlace()
	if err != nil {
		return nil, err
	}
	folder, err := p.Read(ctx, manyhosts.PrometheusQuestion{
		Question: q, Filter: &f.filter, Index: filepath.Join(dir, "fleet"), Say: a.Say, Show: a.Progress,
	})
	if errors.Is(err, manyhosts.ErrNoAgents) {
		err = cli.Usage(err)
	}
	return folder, noAnswer(err)
}
