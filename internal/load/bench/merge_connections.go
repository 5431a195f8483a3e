package bench

import "maps"

// phasesOfDials are the names of Result.Dials.
var phasesOfDials = []string{"dns", "connect", "tls", "handshake", "whole"}

// connections adds up the counts of connections.
func (m *merger) connections() error {
	r := m.out
	r.Mismatches, r.Dials = map[string]int64{}, map[string]Latency{}
	pooled, delivered := false, false
	for _, p := range m.parts {
		x := p.Result
		r.Connections.Retired += x.Connections.Retired
		r.TimedOut += x.TimedOut
		r.Delivered += x.Delivered
		for kind, n := range x.Mismatches {
			r.Mismatches[kind] += n
		}
		pooled, delivered = pooled || x.PoolWait != nil, delivered || x.Delivery != nil
		maps.Copy(r.Dials, x.Dials) // the names; the values follow
		r.Routing = r.Routing.plus(x.Routing)
	}
	for _, name := range phasesOfDials {
		if _, ok := r.Dials[name]; !ok {
			continue
		}
		l, err := m.histograms(func(x *Result) *Latency {
			if one, ok := x.Dials[name]; ok {
				return &one
			}
			return nil
		})
		if err != nil {
			return err
		}
		r.Dials[name] = l
	}
	if delivered {
		took, err := m.histograms(func(x *Result) *Latency { return x.Delivery })
		if err != nil {
			return err
		}
		r.Delivery = &took
	}
	if !pooled {
		return nil
	}
	wait, err := m.histograms(func(x *Result) *Latency { return x.PoolWait })
	r.PoolWait = &wait
	return err
}

// plus adds up how calls were spread over nodes; nil is none.
func (n *Routing) plus(m *Routing) *Routing {
	if m == nil {
		return n
	}
	if n == nil {
		n = &Routing{ReadFrom: m.ReadFrom, Nodes: map[string]int64{}, Retried: map[string]int64{}}
	}
	for node, calls := range m.Nodes {
		n.Nodes[node] += calls
	}
	for code, calls := range m.Retried {
		n.Retried[code] += calls
	}
	return n
}
