package cause

import "slowpath/internal/diagnose/remedy"

// inApplication is a change of the application, which has to be restarted for it.
func inApplication(id, text string) remedy.Step {
	return remedy.Step{ID: id, Kind: remedy.Change, Restart: "the application", Text: text}
}

// alternative is a step to take instead of the one before it, and not besides.
func alternative(s remedy.Step) remedy.Step {
	s.Or = true
	return s
}
