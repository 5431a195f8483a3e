package recording

import (
	"encoding/json"
	"maps"
	"slices"
)

// Without is the recording as it would be if these sources had not taken part: without the host and the tap, it is what
// a connection alone shows. Rows are shared with the original, which must not change meanwhile.
func (r *Recording) Without(sources ...string) *Recording {
	out := New()
	out.Damage, out.standFor, out.apart = r.Damage, r.standFor, r.apart
	maps.Copy(out.Meta, r.Meta)
	for _, s := range r.SourceStatuses() {
		if slices.Contains(sources, s.Name) {
			text, _ := json.Marshal(SourceStatus{Name: s.Name, Why: "left out"}) // strings and a bool: cannot fail
			out.SetMeta(MetaSource+s.Name, string(text))
		}
	}
	gone := func(source string) bool { return slices.Contains(sources, source) }
	for _, c := range r.Calls {
		if gone(c.Source) {
			continue
		}
		out.Calls = append(out.Calls, c)
		if p := r.segments[c.ID]; p != nil {
			out.segments[c.ID] = p
		}
	}
	out.Events = slices.DeleteFunc(slices.Clone(r.Events), func(e Event) bool { return gone(e.Source) })
	out.Histograms = slices.DeleteFunc(slices.Clone(r.Histograms), func(h Histogram) bool { return gone(h.Source) })
	out.Snapshots = slices.DeleteFunc(slices.Clone(r.Snapshots), func(s Snapshot) bool { return gone(s.Source) })
	out.Profiles = r.Profiles
	if gone(SourceHost) { // CPU time is sampled on the host of the process
		out.Profiles = slices.DeleteFunc(slices.Clone(r.Profiles),
			func(p Profile) bool { return SampledOnHost(p.Kind) })
	}
	if r.summed {
		out.summed, out.sums = true, maps.Clone(r.sums)
		maps.DeleteFunc(out.sums, func(source string, _ []HistogramSum) bool { return gone(source) })
	}
	for k, s := range r.series {
		if !gone(k.Source) {
			out.series[k] = s
		}
	}
	if !gone(SourceTap) {
		out.conns, out.packed = r.conns, r.packed
	}
	out.Hosts = onHosts(r.Hosts, func(of *Recording) *Recording { return of.Without(sources...) })
	if r.earlier != nil {
		out.earlier = r.earlier.Without(sources...)
	}
	out.parts, out.placeOf = slices.Clip(r.parts), maps.Clone(r.placeOf)
	out.indexEvents()
	return out
}

// onHosts changes the recordings of hosts, of which several nodes may have the same.
func onHosts(hosts map[string]*Recording, change func(*Recording) *Recording) (out map[string]*Recording) {
	changed := map[*Recording]*Recording{}
	for node, of := range hosts {
		if changed[of] == nil {
			changed[of] = change(of)
		}
		if out == nil {
			out = map[string]*Recording{}
		}
		out[node] = changed[of]
	}
	return out
}
