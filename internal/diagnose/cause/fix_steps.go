package cause

import "slowpath/internal/diagnose/remedy"

// change is a step that is neither a command nor a setting.
func change(id, text string) remedy.Step { return remedy.Step{ID: id, Kind: remedy.Change, Text: text} }

// inApplication is a change of the application, which has to be restarted for it.
func inApplication(id, text string) remedy.Step {
	s := change(id, text)
	s.Restart = "the application"
	return s
}

// alternative is a step to take instead of the one before it, and not besides.
func alternative(s remedy.Step) remedy.Step {
	s.Or = true
	return s
}
