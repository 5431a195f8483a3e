package manyhosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"slowpath/internal/format"
)

// Steps are those of courses. Each is a part of the next one.
var Steps = []time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
}

// Bounds of what is asked of a Prometheus.
const (
	maxPoints       = 1500    // of a series
	maxSeriesPoints = 600_000 // of calls, where a step within the time does that
	maxOfHistograms = 20_000  // nodes of agents whose histograms are read, each of up to 17 series
	maxIncidents    = 1000    // of an agent, a cause and a step
)

// ErrNoAgents says that a Prometheus has nothing to ask.
var ErrNoAgents = errors.New("no agent of slowpath was scraped: let it scrape /metrics of slowpath serve, or correct " +
	"--cluster, --from and --to")

// PrometheusQuestion is what is read for a question.
type PrometheusQuestion struct {
	Question Question
	// Filter says of which time and cluster. Read begins it with a step, and makes its step as long as the rows are.
	Filter *Filter
	Index  string // the SQLite file, which is made
	Say    func(string)
	Show   func(format string, args ...any) // how far it is
}

// Read makes rows of what agents counted, as of a recording, so that the same questions can be asked. What is not
// known is told.
func (p *Prometheus) Read(ctx context.Context, q PrometheusQuestion) (*Folder, error) {
	step, err := p.step(ctx, q)
	if err != nil {
		return nil, err
	}
	f := q.Filter
	ns := f.From.UnixNano()
	f.From, f.Step = time.Unix(0, ns-ns%int64(step)), max(f.Step, step)
	n := newNumbers(f.From, f.To, step)
	families := familiesOf(q.Question.Name)
	for i, of := range families {
		q.Show("asking Prometheus %d of %d: %s", i+1, len(families), of.name)
		err := p.ask(ctx, of.expr(f.Cluster, step), n.begin, n.at(n.points-1), step, func(s model.SampleStream) error {
			return n.add(of, s)
		})
		if err != nil {
			return nil, err
		}
	}
	if len(n.agents) == 0 {
		return nil, fmt.Errorf("%s, from %s to %s: %w", p.source, f.From.UTC().Format(time.RFC3339),
			f.To.UTC().Format(time.RFC3339), ErrNoAgents)
	}
	n.single()
	n.name()
	if q.Question.Name == "worst" {
		if err := p.readHistograms(ctx, n, q); err != nil {
			return nil, err
		}
	}
	index, err := openIndex(q.Index)
	if err != nil {
		return nil, err
	}
	q.Show("copying the numbers of %d agents", len(n.agents))
	if err := index.addNumbers(ctx, n); err != nil {
		index.Close()
		return nil, err
	}
	n.tell(q)
	return index, nil
}

// step is the shortest one with few values, by the number of series at some times, or the longest within the time.
func (p *Prometheus) step(ctx context.Context, q PrometheusQuestion) (time.Duration, error) {
	const times = 12
	series, span, f := 0, q.Filter.To.Sub(q.Filter.From), q.Filter
	count := fmt.Sprintf("count(%s%s or %s%s)", callsTotal, selector(f.Cluster, `whose="users"`), callerCalls,
		selector(f.Cluster))
	every := max(span/times, time.Second).Truncate(time.Second)
	err := p.ask(ctx, count, f.From, f.To, every, func(s model.SampleStream) error {
		for _, v := range s.Values {
			series = max(series, int(v.Value))
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	step := Steps[0]
	for _, longer := range Steps {
		if longer > span {
			break
		}
		step = longer
		if points := int(span/step) + 2; points <= maxPoints && points*series <= maxSeriesPoints {
			break
		}
	}
	if step > f.Step {
		q.Say(fmt.Sprintf("%s series: times are exact to %s", format.Thousands(series), format.Brief(step)))
	}
	return step, nil
}

// selector is what the labels of series are to be.
func selector(cluster string, matchers ...string) string {
	if cluster != "" {
		matchers = append(matchers, "cluster="+strconv.Quote(cluster))
	}
	return "{" + strings.Join(matchers, ",") + "}"
}

// familiesOf are what a question needs.
func familiesOf(question string) []family {
	caller := []string{"caller"}
	all := []family{
		{buildInfo, []string{"version"}},
		{processStart, nil},
		{callsTotal, []string{"node", "whose"}},
		{atServer, []string{"node"}},
	}
	if question == "who" || question == "edges" {
		return append(all, family{callerCalls, caller}, family{callerSlow, caller}, family{callerSeconds, caller},
			family{threshold, nil})
	}
	all = append(all, family{slowTotal, []string{"node", "whose"}}, family{failedTotal, []string{"node", "whose"}},
		family{incidentTotal, []string{"cause", "verdict"}})
	if question == "worst" {
		all = append(all, family{callerSlow, caller})
	}
	return all
}

// expr asks for the greatest value of each step, which stays where a scrape fails.
func (f family) expr(cluster string, step time.Duration) string {
	var matchers []string
	if slices.Contains(f.labels, "whose") {
		matchers = append(matchers, `whose="users"`)
	}
	of := fmt.Sprintf("_over_time(%s%s[%ds])", f.name, selector(cluster, matchers...), step/time.Second)
	switch f.name {
	case processStart: // an agent that begins anew in a step counts as the one before
		return fmt.Sprintf("min%s and on (job, instance) max_over_time(%s%s[%ds])", of, buildInfo, selector(cluster),
			step/time.Second)
	case slowTotal, failedTotal, callerSlow, callerSeconds, atServer: // most are zero, which says no more than none
		return "max" + of + " > 0"
	}
	return "max" + of
}
