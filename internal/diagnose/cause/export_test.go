package cause

import (
	"slices"

	"slowpath/internal/diagnose/remedy"
)

// What tests outside the package need.
var (
	CommandLock        = commandLock
	ExplainCommandLoop = explainCommandLoop
	FrameworkFixes     = frameworkFixes
	SentByServer       = sentByServer
)

// FixLines are the lines of a finding's fix.
func (f Finding) FixLines() []string { return append(slices.Clone(f.Fix), remedy.Lines(f.FixSteps)...) }
