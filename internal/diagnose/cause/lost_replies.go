package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

func (f *Finding) supportReplies(r facts.LostReplies) {
	f.support(recording.SourceTap, fmt.Sprintf("%d replies arrived %s or later after the server had sent them, up to "+
		"%s; %d of them right after one end had sent again what was not acknowledged: they were lost on their way to "+
		"the caller",
		r.Late, facts.Dur(facts.RtoMinNs*9/10), facts.Dur(r.MaxNs), r.Resent), float64(r.Late), "replies")
}
