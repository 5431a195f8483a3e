package facts

import (
	"iter"
	"strings"

	"slowpath/internal/recording"
)

// Bodies are the snapshots with a name of subjects that begin with a prefix, in order of time, each without that prefix
// and with its decoded body. source is whose they are; empty: any. A damaged snapshot is left out.
func Bodies[T any](rec *recording.Recording, source, name, prefix string) iter.Seq2[recording.Snapshot, T] {
	return func(yield func(recording.Snapshot, T) bool) {
		for _, s := range rec.Snapshots {
			var ofPrefix bool
			s.Subject, ofPrefix = strings.CutPrefix(s.Subject, prefix)
			if !ofPrefix || s.Name != name || source != "" && s.Source != source {
				continue
			}
			if body, ok := recording.BodyOf[T](s); ok && !yield(s, body) {
				return
			}
		}
	}
}
