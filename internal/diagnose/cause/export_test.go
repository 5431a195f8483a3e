package cause

import (
	"slowpath/internal/diagnose/remedy"
)

// What tests outside the package need.
var (
	CommandLock        = commandLock
	Documented         = documented
	ExplainCommandLoop = explainCommandLoop
	FrameworkFixes     = frameworkFixes
	SentByServer       = sentByServer
)

// FixLines are the lines of a finding's fix.
func (f Finding) FixLines() []string { return remedy.Lines(f.FixSteps) }
