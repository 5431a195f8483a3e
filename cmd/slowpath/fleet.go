package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/manyhosts"
	"slowpath/internal/outfile"
	"slowpath/internal/watching"
)

// fleetFlags are those of fleet.
type fleetFlags struct {
	filter   manyhosts.Filter
	from, to string
	last     cli.Days
	asJSON   bool
	asSQL    bool
	bucket   bucketFlags
}

// fleetDoctor is the question that is none of SQL alone.
const fleetDoctor = "doctor"

func (a *app) fleet() *cobra.Command {
	var f fleetFlags
	var questions []string
	for _, q := range manyhosts.Questions {
		questions = append(questions, fmt.Sprintf("%s (%s)", q.Name, strings.TrimPrefix(q.About, q.Name+": ")))
	}
	c := &cobra.Command{
		Use:   "fleet SOURCE... QUESTION",
		Short: "Ask many hosts: which callers suffered, since when, because of what, where",
		Long: `fleet answers a question about many hosts. A SOURCE is a directory with recordings, such as the incidents
of agents, or a recording. What they say is copied into one SQLite file beside the directory (DIRECTORY.fleet), so that
only new recordings are read again. A directory of the path may say whose a recording is: cluster=NAME, host=NAME.
A SOURCE s3://BUCKET/PREFIX is what agents write by --recordings: incidents of the last 24 hours, or of --from, --to
and --last, are fetched into the user's cache, each once. A SOURCE clickhouse://HOST:9000/DATABASE (clickhouses:// with
TLS, clickhouse+http://HOST:8123) is what OpenTelemetry Collectors fill with what agents send; fleet schema makes its
tables. CLICKHOUSE_USER and CLICKHOUSE_PASSWORD say who asks.

Questions: ` + strings.Join(questions, ", ") + `; doctor ID (the verdict of an incident, by the recordings of all
hosts that belong to it).

Calls that two hosts saw are one call (by the client's address and the TCP sequence number), and a node has one name.
Exit codes: 0 answered, 2 usage, and where there is nothing to ask, 3 the bucket or ClickHouse does not answer.`,
		Example: `  slowpath fleet recordings/ why
  slowpath fleet recordings/ who --last 1h
  slowpath fleet clickhouses://ch.example:9440/slowpath why --last 1h
  slowpath fleet web-1.slowpath redis-1.slowpath worst --json
  slowpath fleet recordings/ since --from 2026-11-28T14:00 --to 2026-11-28T15:00
  slowpath fleet recordings/ doctor web-1/20261128T140312Z-1
  slowpath fleet s3://incidents/redis why --last 7d
  slowpath fleet recordings/ edges --sql        # the query`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.askFleet(cmd.Context(), &f, args) },
	}
	c.AddCommand(a.fleetSchema())
	fl := c.Flags()
	fl.BoolVar(&f.asJSON, "json", false, "print "+manyhosts.Schema+"; of doctor slowpath.diagnosis/v1")
	fl.BoolVar(&f.asSQL, "sql", false, "print the query, and ask nothing")
	fl.StringVar(&f.from, "from", "", "what began at this `time` (UTC, 2026-11-28T14:00) or later")
	fl.StringVar(&f.to, "to", "", "what began before this `time`")
	fl.Var(&f.last, "last", "what began in this `time` before --to, or before the end of all")
	fl.StringVar(&f.filter.Cluster, "cluster", "", "of this `cluster`")
	fl.StringVar(&f.filter.Node, "node", "", "of this `node`, as worst names it")
	fl.StringVar(&f.filter.Caller, "caller", "", "of this `caller`, as who names it")
	fl.IntVar(&f.filter.Limit, "limit", 20, "how many `rows` at most")
	addBucketFlags(fl, &f.bucket)
	return c
}

// maxFleetRows is how many rows an answer may have.
const maxFleetRows = 100_000

// openSource opens recordings, the bucket of agents, or a database that collectors fill.
func (a *app) openSource(ctx context.Context, f *fleetFlags, id string, sources []string) (manyhosts.Source, error) {
	if len(sources) == 1 && manyhosts.IsClickHouse(sources[0]) {
		source, err := a.openClickHouse(ctx, sources[0])
		if err == nil {
			err = source.CheckSchema(ctx)
		}
		if errors.Is(err, manyhosts.ErrSchema) {
			return nil, cli.Usage(err)
		}
		return source, err
	}
	if slices.ContainsFunc(sources, func(s string) bool { return strings.HasPrefix(s, bucketScheme) }) {
		return a.openBucket(ctx, f, id, sources)
	}
	return a.openFleet(ctx, sources)
}

func (a *app) askFleet(ctx context.Context, f *fleetFlags, args []string) error {
	sources, question, id, err := fleetArguments(args)
	if err != nil {
		return err
	}
	if f.filter.Limit < 1 || f.filter.Limit > maxFleetRows {
		return cli.Usagef("--limit %d: give 1 to %d", f.filter.Limit, maxFleetRows)
	}
	q, _ := manyhosts.QuestionOf(question)
	if f.asSQL {
		if question == fleetDoctor {
			return cli.Usagef("doctor judges recordings: it has no query")
		}
		_, err := fmt.Fprint(a.Stdout, q.SQL())
		return err
	}
	defer a.Scratch.Remove()
	a.InterruptEnds("there is no answer")
	source, err := a.openSource(ctx, f, id, sources)
	if err != nil {
		return err
	}
	defer source.Close()
	if question == fleetDoctor {
		folder, ok := source.(*manyhosts.Folder)
		if !ok {
			return cli.Usagef("doctor judges recordings, which %s does not have: give the directory or the bucket in "+
				"which they are", sources[0])
		}
		return a.judgeFleet(ctx, folder, id, f.asJSON)
	}
	err = f.span(ctx, source)
	if errors.Is(err, manyhosts.ErrNoRecordings) { // none could be read
		return cli.Usagef("%s: %w", strings.Join(sources, " "), err)
	}
	if err != nil {
		return err
	}
	answer, err := manyhosts.Ask(ctx, source, q, f.filter)
	if err != nil {
		return err
	}
	a.ProgressDone()
	if f.asJSON {
		return answer.JSON(a.Stdout, f.filter)
	}
	return answer.Print(a.Stdout, f.filter, a.Style())
}

// fleetArguments parts the sources from the question.
func fleetArguments(args []string) (sources []string, question, id string, err error) {
	names := []string{fleetDoctor}
	for _, q := range manyhosts.Questions {
		names = append(names, q.Name)
	}
	i := slices.IndexFunc(args, func(arg string) bool { return slices.Contains(names, arg) })
	switch {
	case len(args) > 0 && i < 0:
		return nil, "", "", cli.Usagef("there is no question in %q: end with one of %s", args,
			strings.Join(names, ", "))
	case i < 1:
		return nil, "", "", cli.Usagef("name where the recordings are, and a question: " +
			"slowpath fleet recordings/ why")
	}
	sources, question = args[:i], args[i]
	rest := args[i+1:]
	if question == fleetDoctor && len(rest) == 1 {
		return sources, question, rest[0], nil
	}
	if question == fleetDoctor {
		return nil, "", "", cli.Usagef("doctor needs the id of an incident: slowpath fleet %s incidents names them",
			strings.Join(sources, " "))
	}
	if len(rest) > 0 {
		return nil, "", "", cli.Usagef("after the question %s there is %q: leave it out", question, rest[0])
	}
	return sources, question, "", nil
}

// openFleet reads recordings. The index of a directory is beside it, and that of files is one of the moment.
func (a *app) openFleet(ctx context.Context, sources []string) (*manyhosts.Folder, error) {
	for _, s := range sources {
		if strings.Contains(s, "://") {
			return nil, cli.Usagef("%s: this version reads directories, recordings, s3://BUCKET/PREFIX and "+
				"clickhouse://USER@HOST:9000/DATABASE", s)
		}
		if _, err := os.Stat(s); err != nil {
			return nil, cli.Usagef("%w; give a directory with recordings, or recordings", err)
		}
	}
	index := ""
	if info, err := os.Stat(sources[0]); err == nil && info.IsDir() && len(sources) == 1 {
		index = indexBeside(sources[0])
	}
	if index == "" {
		dir, _, err := a.ScratchPlace()
		if err != nil {
			return nil, err
		}
		index = filepath.Join(dir, "fleet")
	}
	defer a.Working("reading the recordings")()
	folder, err := manyhosts.OpenFolder(ctx, manyhosts.FolderOptions{
		Paths: sources, Index: index, Version: a.Version, Say: a.Say, Show: a.Progress,
	})
	if errors.Is(err, manyhosts.ErrNoRecordings) {
		return nil, cli.Usagef("%s: %w", strings.Join(sources, " "), err)
	}
	return folder, err
}

// indexBeside is the index of a directory; empty where nothing can be written beside it.
func indexBeside(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil || filepath.Dir(abs) == abs {
		return ""
	}
	index := abs + ".fleet"
	f, err := outfile.Create(index)
	if err == nil {
		f.Close()
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		return index
	}
	return ""
}

// span makes times of the flags: all that there is, where they say nothing.
func (f *fleetFlags) span(ctx context.Context, s manyhosts.Source) error {
	first, last, err := s.Span(ctx)
	if err != nil {
		return err
	}
	return f.between(first, last)
}

// between makes times of the flags, and of these where the flags say nothing.
func (f *fleetFlags) between(first, last time.Time) (err error) {
	if f.filter.To, err = timeOf("--to", f.to, last); err != nil {
		return err
	}
	if f.last > 0 && f.from != "" {
		return cli.Usagef("--from and --last both say when it begins: give one of them")
	}
	if f.last > 0 {
		first = f.filter.To.Add(-time.Duration(f.last))
	}
	if f.filter.From, err = timeOf("--from", f.from, first); err != nil {
		return err
	}
	if !f.filter.From.Before(f.filter.To) {
		return cli.Usagef("from %s to %s: the end is not after the begin", f.filter.From.UTC().Format(time.RFC3339),
			f.filter.To.UTC().Format(time.RFC3339))
	}
	f.filter.Step = manyhosts.Step(f.filter.To.Sub(f.filter.From), f.filter.Limit)
	return nil
}

func timeOf(flag, text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, cli.Usagef("%s %s: that is no time; write it in UTC, as 2026-11-28T14:00", flag, text)
}

// maxJudgedBytes are the recordings that are judged together, at most: they are read whole, and take about six times as
// much memory.
const maxJudgedBytes = 256 << 20

// judgeFleet prints the verdict of an incident, by all recordings that belong to it.
func (a *app) judgeFleet(ctx context.Context, source *manyhosts.Folder, id string, asJSON bool) error {
	paths, left, err := source.Recordings(ctx, id)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return cli.Usagef("there is no incident %s: slowpath fleet SOURCE incidents names them", id)
	}
	a.ProgressDone()
	paths, large := within(paths, maxJudgedBytes)
	if left = append(large, left...); len(left) > 0 {
		a.Say(fmt.Sprintf("%s with the fewest of its calls are left out, such as %s: at most %d, or 256 MiB, are "+
			"judged together; slowpath doctor FILE... judges those that you name",
			format.Count(len(left), "recording"), left[0], manyhosts.MaxJudged))
	}
	a.Say(fmt.Sprintf("judging %s", strings.Join(paths, " ")))
	v := watching.Verdict{CommandLine: a.CommandLine, AsJSON: asJSON}
	err = v.Files(ctx, paths)
	if err != nil && len(paths) > 1 {
		a.Say(fmt.Sprintf("%v: the verdict is of %s alone", err, paths[0]))
		return v.Files(ctx, paths[:1])
	}
	return err
}

// within parts files into those that have together so many bytes, the first one in any case, and the others.
func within(paths []string, most int64) (in, out []string) {
	bytes := int64(0)
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil { // else it says so when it is read
			bytes += info.Size()
		}
		if len(out) > 0 || bytes > most && len(in) > 0 {
			out = append(out, path)
		} else {
			in = append(in, path)
		}
	}
	return in, out
}
