package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
)

// change is a step that a text says; text has arguments as for fmt.Sprintf.
func change(id, text string, args ...any) remedy.Step {
	return remedy.Step{ID: id, Kind: remedy.Change, Text: fmt.Sprintf(text, args...)}
}

// inApplication is a change of the application, which is then started again.
func inApplication(id, text string, args ...any) remedy.Step {
	return remedy.Step{ID: id, Kind: remedy.Change, Text: fmt.Sprintf(text, args...), Restart: "the application"}
}

// orElse is a step in place of the one before.
func orElse(s remedy.Step) remedy.Step {
	s.Or = true
	return s
}

// onHost is a change on the host of a node.
func onHost(n *facts.Node, id, text string, args ...any) remedy.Step {
	s := change(id, text, args...)
	s.Where = "the host of " + format.Name(n.Address)
	return s
}

// newerServer is a change of the server's version.
func newerServer(text string) remedy.Step {
	return remedy.Step{ID: "upgrade-server", Kind: remedy.Change, Text: text, Restart: "the server"}
}

// closeIdle lets a server that keeps idle connections close them.
func closeIdle(n *facts.Node) []remedy.Step {
	if n.IdleLimitNs() > 0 {
		return nil
	}
	return []remedy.Step{
		remedy.ConfigSet(n, "close-idle", "timeout", "300", "Close connections that are idle for 5 minutes").
			Risking("a library that does not open a new one reports an error"),
	}
}
