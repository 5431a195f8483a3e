package manyhosts

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"slowpath/internal/format"
)

// numbers are what Prometheus knows of agents, at the ends of steps: the first of these is the begin.
type numbers struct {
	begin  time.Time
	step   time.Duration
	points int
	agents map[string]*scraped // by the labels of their targets
	values int                 // of all series
}

// scraped is an agent as one Prometheus, or one of its replicas, scrapes it.
type scraped struct {
	target model.Metric
	host   string
	seen   []bool // it was scraped in the step that ends at a point
	series map[measure][]float64
	// buckets are calls of all steps by recording.ExponentialBucket, of each node.
	buckets map[string]map[int64]float64
}

// measure is a series of an agent: the name of its metric, and labels. A metric has some of them.
type measure struct{ metric, node, caller, cause, verdict string }

// family is a metric that is read.
type family struct {
	name   string
	labels []string // of the metric itself: all others are of the target
}

const (
	callsTotal    = "slowpath_calls_total"
	slowTotal     = "slowpath_slow_calls_total"
	failedTotal   = "slowpath_failed_calls_total"
	incidentTotal = "slowpath_incidents_total"
	callerCalls   = "slowpath_caller_calls_total"
	callerSlow    = "slowpath_caller_slow_calls_total"
	callerSeconds = "slowpath_caller_slow_call_seconds_total"
	threshold     = "slowpath_slow_threshold_seconds"
	atServer      = "slowpath_node_seen_at_server"
	buildInfo     = "slowpath_build_info"
	durations     = "slowpath_call_duration_seconds"
	processStart  = "process_start_time_seconds"
)

// maxValues is how many values of series are read for a question: series times points.
const maxValues = 6_000_000

var errTooMany = fmt.Errorf("there are more than %s values: ask for less, by --cluster or --last",
	format.Thousands(maxValues))

func newNumbers(begin, to time.Time, step time.Duration) *numbers {
	points := int((to.Sub(begin)+step-1)/step) + 1
	return &numbers{begin: begin, step: step, points: points, agents: map[string]*scraped{}}
}

func (n *numbers) at(point int) time.Time { return n.begin.Add(time.Duration(point) * n.step) }

// parted are the labels of a series: those of its target, and those of its metric. Where a target has a label of the
// same name Prometheus keeps that of the metric as exported_NAME.
func parted(labels model.Metric, f family) (target model.Metric, own map[string]string) {
	target, own = labels.Clone(), map[string]string{}
	delete(target, model.MetricNameLabel)
	for _, name := range f.labels {
		label := model.LabelName(name)
		if _, ok := target["exported_"+label]; ok {
			label = "exported_" + label
		}
		own[name] = string(target[label])
		delete(target, label)
	}
	return target, own
}

// add adds a series of a family.
func (n *numbers) add(f family, s model.SampleStream) error {
	if err := n.count(); err != nil {
		return err
	}
	target, own := parted(s.Metric, f)
	key := target.String()
	a := n.agents[key]
	if a == nil {
		a = &scraped{
			target: target, seen: make([]bool, n.points), series: map[measure][]float64{},
			buckets: map[string]map[int64]float64{},
		}
		n.agents[key] = a
	}
	m := measure{f.name, own["node"], own["caller"], own["cause"], own["verdict"]}
	of := a.series[m]
	if of == nil {
		of = n.unknown()
		a.series[m] = of
	}
	for _, v := range s.Values {
		if i, ok := n.put(of, v.Timestamp, float64(v.Value)); ok {
			a.seen[i] = true
		}
	}
	return nil
}

// count counts the values of a series.
func (n *numbers) count() error {
	if n.values += n.points; n.values > maxValues {
		return errTooMany
	}
	return nil
}

// put puts a value at its point.
func (n *numbers) put(into []float64, t model.Time, v float64) (point int, ok bool) {
	at := t.Time().Sub(n.begin)
	point = int(at / n.step)
	if ok = at >= 0 && point < n.points && countable(v); ok {
		into[point] = v
	}
	return point, ok
}

// unknown are values of all points.
func (n *numbers) unknown() []float64 { return slices.Repeat([]float64{math.NaN()}, n.points) }

// countable is what a counter can be.
func countable(v float64) bool { return v >= 0 && v < 1<<53 }

// added is what a counter grew in the step that ends at each point. Counters begin at zero with their agent, so that
// one that has no series yet, or any more, is zero. What grew while the agent was not scraped is in the step in which
// it was again. The value at a point is the greatest of its step: an agent that began anew in a step counts as the one
// before, and what it counted is in the step after it.
func (n *numbers) added(a *scraped, values []float64) []float64 {
	added, start := make([]float64, n.points), a.series[measure{metric: processStart}]
	if start == nil {
		start = n.unknown()
	}
	last, was := -1, 0.0
	for i, v := range values {
		if !a.seen[i] {
			continue
		}
		if math.IsNaN(v) {
			v = 0
		}
		began := time.UnixMilli(int64(start[i] * 1000))
		switch {
		case last < 0:
			if i > 0 && start[i] > 0 && began.After(n.begin) {
				added[i] = v
			} // else what it counted before this time is not known
		case start[i]-start[last] > maxDrift.Seconds() && began.After(n.at(last-1)):
			if v >= was && !began.After(n.at(last)) {
				added[last] = 0 // the greatest value of that step may be one of this run
			}
			added[i] = v
		case v < was:
			added[i] = v
		default:
			added[i] = v - was
		}
		last, was = i, v
	}
	return added
}

// maxDrift is how much the time at which a process began may change by: hosts compute it from their clock.
const maxDrift = 5 * time.Second

// single drops what replicas of a Prometheus say once more: of those at the same time, that with the fewest gaps stays.
func (n *numbers) single() {
	scrapes := func(a *scraped) (seen int) {
		for _, yes := range a.seen {
			if yes {
				seen++
			}
		}
		return seen
	}
	keys := slices.SortedFunc(maps.Keys(n.agents), func(a, b string) int {
		return cmp.Or(cmp.Compare(scrapes(n.agents[b]), scrapes(n.agents[a])), cmp.Compare(a, b))
	})
	kept := map[string][]*scraped{}
	for _, key := range keys {
		a := n.agents[key]
		name := a.cluster() + " " + a.apart()
		if slices.ContainsFunc(kept[name], a.overlaps) {
			delete(n.agents, key)
			continue
		}
		kept[name] = append(kept[name], a)
	}
}

// overlaps reports whether both were scraped at more than the time at which one may have taken the place of the other.
func (a *scraped) overlaps(b *scraped) bool {
	both := 0
	for i, seen := range a.seen {
		if seen && b.seen[i] {
			both++
		}
	}
	return both > 1
}

// missing reports whether the agent was not scraped for longer than Prometheus bridges, before a time.
func (n *numbers) missing(a *scraped, to time.Time) bool {
	const bridged = 5 * time.Minute
	away := 0
	for i, seen := range a.seen {
		if away++; seen {
			away = 0
		}
		if time.Duration(away)*n.step > bridged && !n.at(i).After(to) {
			return true
		}
	}
	return false
}

// notApart are labels that tell no agents of a cluster apart: replicas of a Prometheus, and jobs that scrape the same
// agent, differ in them.
var notApart = []model.LabelName{"job", "prometheus", "prometheus_replica", "replica", "__replica__", "cluster"}

// name gives agents the names of their hosts: the instance without its port, where that is of one agent alone, else the
// instance, else all labels of the target.
func (n *numbers) name() {
	for _, name := range []func(a *scraped) string{
		func(a *scraped) string {
			instance := string(a.target[model.InstanceLabel])
			if host, _, err := net.SplitHostPort(instance); err == nil {
				return host
			}
			return instance
		},
		func(a *scraped) string { return string(a.target[model.InstanceLabel]) },
		(*scraped).apart,
	} {
		agents := map[[2]string]map[string]bool{}
		for _, a := range n.agents {
			of := [2]string{a.cluster(), name(a)}
			if agents[of] == nil {
				agents[of] = map[string]bool{}
			}
			agents[of][a.apart()] = true
		}
		for _, a := range n.agents {
			if a.host == "" && len(agents[[2]string{a.cluster(), name(a)}]) == 1 {
				a.host = name(a)
			}
		}
	}
}

func (a *scraped) cluster() string { return string(a.target["cluster"]) }

// apart are the labels that tell a target apart from others of its cluster.
func (a *scraped) apart() string {
	rest := a.target.Clone()
	for _, name := range notApart {
		delete(rest, name)
	}
	return rest.String()
}

// nodes are those that users called.
func (a *scraped) nodes() (nodes []string) {
	for m := range a.series {
		if m.metric == callsTotal {
			nodes = append(nodes, m.node)
		}
	}
	slices.Sort(nodes)
	return nodes
}
