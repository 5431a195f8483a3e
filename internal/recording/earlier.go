package recording

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Earlier is what the recording of an incident has of the time before it: latencies, samples, events and snapshots, and
// no calls. It says what was usual, and what was changed. Nil where there is nothing of that time.
func (r *Recording) Earlier() *Recording { return r.earlier }

// of is the recording to which a row belongs: itself, or Earlier. The source becomes the one that wrote it.
func (r *Recording) of(source *string) *Recording {
	name, before := strings.CutPrefix(*source, beforePrefix)
	if !before {
		return r
	}
	if r.earlier == nil {
		r.earlier = New()
	}
	*source = name
	return r.earlier
}

// indexEarlier orders the rows of Earlier, and gives it the metas of the recording, but for the times.
func (r *Recording) indexEarlier() {
	if r.earlier == nil {
		return
	}
	maps.Copy(r.earlier.Meta, r.Meta)
	delete(r.earlier.Meta, MetaStart)
	r.earlier.Meta[MetaEnd] = r.Meta[MetaStart]
	r.earlier.Index()
	from, _ := strconv.ParseInt(r.Meta[MetaStart], 10, 64)
	for _, s := range r.earlier.series {
		from = min(from, s[0].TimeNs)
	}
	r.earlier.Meta[MetaStart] = strconv.FormatInt(from, 10)
}

// WithEarlier is the recording as one that began when Earlier does: for what was changed, as it is the only evidence of
// that time that counts. Rows are shared with the original, which must not change meanwhile.
func (r *Recording) WithEarlier() *Recording {
	if r.earlier == nil {
		return r
	}
	out := r.Without()
	out.Hosts = onHosts(r.Hosts, (*Recording).WithEarlier)
	out.earlier = nil
	out.Meta[MetaStart] = r.earlier.Meta[MetaStart]
	out.Events = append(slices.Clone(r.earlier.Events), out.Events...)
	out.Snapshots = append(slices.Clone(r.earlier.Snapshots), out.Snapshots...)
	for k, s := range r.earlier.series {
		out.series[k] = append(slices.Clone(s), out.series[k]...)
	}
	out.indexEvents()
	return out
}
