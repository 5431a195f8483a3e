package cause

import (
	"fmt"

	"slowpath/internal/diagnose/remedy"
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
