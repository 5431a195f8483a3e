package cause

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// largeLog is one of the logs of COMMANDLOG.
type largeLog struct {
	name      string // as COMMANDLOG GET has it
	one, many string
	did       string // what the server did with the bytes
	transfers []mainthread.LargeTransfers
}

func largeLogs(n *facts.Node) []largeLog {
	return []largeLog{
		{"large-reply", "reply", "replies", "sent", mainthread.LargeReplies(n)},
		{"large-request", "request", "requests", "received", mainthread.LargeRequests(n)},
	}
}

// supportLarge lists the commands whose long replies and requests the server logged, with who sent them. It returns
// those of the log that has most of the bytes that the server sent, or received; none where no log has.
func (f *Finding) supportLarge(n *facts.Node) (log string, most []account.Suspect) {
	for _, l := range largeLogs(n) {
		share, entries := 0.0, []account.Suspect(nil)
		for i, t := range l.transfers {
			if share += t.Share; t.Share < degree.Part || i >= degree.Listed {
				continue
			}
			entries = append(entries, t.Entries...)
			keys, longest := "", ""
			if t.Keys > 0 {
				keys = " (" + counted(t.Keys, "key") + ")"
			}
			if who := caller.ClientText(n, t.Entries[0]); who != "" {
				longest = "; the longest: " + format.Name(who)
			}
			f.support(recording.SourceServer, t.MostBytes, "bytes",
				"COMMANDLOG: %s of %s%s, up to %.1f MB: %s of the bytes that the server %s%s",
				counted(t.Count, "long "+l.one, "long "+l.many), format.Name(t.Command), keys, t.MostBytes/1e6,
				format.Percent(t.Share), l.did, longest)
		}
		if share > degree.Most && most == nil {
			log, most = l.name, entries
		}
	}
	return log, most
}
