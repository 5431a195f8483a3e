package manyhosts

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// maxBuckets is how many a native histogram may have; those of agents have some hundred.
const maxBuckets = 2000

// bounds are those of a bucket, in seconds: above the one, up to the other.
type bounds struct{ least, most float64 }

// readHistograms reads how long the calls of all steps took, at some times. Without it p99 is not known, which is told.
func (p *Prometheus) readHistograms(ctx context.Context, n *numbers, q PrometheusQuestion) error {
	nodes := 0
	for _, a := range n.agents {
		nodes += len(a.nodes())
	}
	if nodes > maxOfHistograms {
		q.Say("p99 is left out: there are more than " + format.Thousands(maxOfHistograms) + " nodes of agents; give " +
			"--cluster")
		return nil
	}
	q.Show("asking Prometheus for histograms")
	err := p.histograms(ctx, n, q.Filter)
	if err != nil && ctx.Err() == nil {
		q.Say(fmt.Sprintf("p99 is not known: %v", err))
		return nil
	}
	return err
}

// histograms adds the calls of all steps to the buckets of nodes. max_over_time is none of histograms: the values are
// those at the times themselves.
func (p *Prometheus) histograms(ctx context.Context, n *numbers, f *Filter) error {
	const times = 8
	h := newNumbers(n.begin, f.To, (f.To.Sub(n.begin)/times).Truncate(time.Second)+time.Second)
	ask := func(expr string, visit func(model.SampleStream) error) error {
		return p.ask(ctx, expr, h.begin, h.at(h.points-1), h.step, visit)
	}
	agents := buildInfo + selector(f.Cluster)
	for _, of := range []struct {
		family
		expr string
	}{
		{family{buildInfo, []string{"version"}}, agents},
		{family{processStart, nil}, processStart + selector(f.Cluster) + " and on (job, instance) " + agents},
	} {
		err := ask(of.expr, func(s model.SampleStream) error { return h.add(of.family, s) })
		if err != nil {
			return err
		}
	}
	labels := []string{"node", "whose", "le"}
	native := func(s model.SampleStream) error {
		target, own := parted(s.Metric, family{durations, labels})
		key := target.String()
		if n.agents[key] == nil || h.agents[key] == nil { // one of a replica, or of other times
			return nil
		}
		buckets := map[bounds][]float64{}
		for _, v := range s.Histograms {
			for _, b := range v.Histogram.Buckets {
				of := bounds{float64(b.Lower), float64(b.Upper)}
				if buckets[of] == nil {
					if len(buckets) == maxBuckets {
						return errTooMany
					}
					buckets[of] = h.unknown()
				}
				h.put(buckets[of], v.Timestamp, float64(b.Count))
			}
		}
		for of, values := range buckets {
			n.agents[key].took(own["node"], of, total(h.added(h.agents[key], values)))
		}
		return nil
	}
	type place struct{ agent, node string }
	upTo := map[place]map[float64]float64{} // calls up to a time in seconds
	classic := func(s model.SampleStream) error {
		target, own := parted(s.Metric, family{durations, labels})
		at := place{target.String(), own["node"]}
		most, err := strconv.ParseFloat(own["le"], 64)
		if a := n.agents[at.agent]; err != nil || a == nil || h.agents[at.agent] == nil || a.buckets[at.node] != nil {
			return nil // native ones are finer
		}
		values := h.unknown()
		for _, v := range s.Values {
			h.put(values, v.Timestamp, float64(v.Value))
		}
		if err := h.count(); err != nil {
			return err
		}
		if upTo[at] == nil {
			upTo[at] = map[float64]float64{}
		}
		upTo[at][most] = total(h.added(h.agents[at.agent], values))
		return nil
	}
	of := selector(f.Cluster, `whose="users"`)
	if err := ask(durations+of, native); err != nil {
		return err
	}
	if err := ask(durations+"_bucket"+of+" > 0", classic); err != nil {
		return err
	}
	for at, calls := range upTo {
		n.agents[at.agent].tookUpTo(at.node, calls)
	}
	return nil
}

func total(all []float64) (sum float64) {
	for _, v := range all {
		sum += v
	}
	return sum
}

// took adds calls of a bucket: evenly between its bounds, as Prometheus's histogram_quantile does.
func (a *scraped) took(node string, b bounds, calls float64) {
	const shortest = 1e-6 // what is below is there
	least, most := b.least, b.most
	if !countable(calls) || calls == 0 || !(most > least) {
		return
	}
	if math.IsInf(most, 1) {
		most = least * 1.09 // that it is longer is all that is known
	}
	of := a.buckets[node]
	if of == nil {
		of = map[int64]float64{}
		a.buckets[node] = of
	}
	for at := int64(recording.ExponentialBucket(max(least, shortest))); ; at++ {
		bottom, top := math.Exp2(float64(at)/8), math.Exp2(float64(at+1)/8)
		if bottom < shortest {
			bottom = 0
		}
		if part := (min(top, most) - max(bottom, least)) / (most - least); part > 0 {
			of[at] += calls * part
		}
		if top >= most {
			return
		}
	}
}

// tookUpTo adds calls by the classic buckets of a histogram: how many took at most so many seconds.
func (a *scraped) tookUpTo(node string, upTo map[float64]float64) {
	least, before := 0.0, 0.0
	for _, most := range slices.Sorted(maps.Keys(upTo)) {
		a.took(node, bounds{least, most}, upTo[most]-before)
		least, before = most, upTo[most]
	}
}

// bucketsOf are the calls of all steps by recording.ExponentialBucket.
func (a *scraped) bucketsOf(node string) [][2]float64 {
	out := [][2]float64{}
	for _, at := range slices.Sorted(maps.Keys(a.buckets[node])) {
		out = append(out, [2]float64{float64(at), a.buckets[node][at]})
	}
	return out
}
