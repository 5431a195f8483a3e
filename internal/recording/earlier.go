package recording

import (
	"maps"
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
}
