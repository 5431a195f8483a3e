// Package scenario makes faults by real means on real servers. The cause of each is known: verdicts are graded against
// it.
//
// A scenario is in the file that is named after its id; a scenario ID-VARIANT may be in the file of ID. Files named
// lab… hold what several scenarios are made with.
package scenario

import (
	"context"
	"errors"
	"time"

	"slowpath/internal/lab/servers"
)

// HealthyCause is the cause of a scenario that is none: a load that makes nothing slow.
const HealthyCause = "healthy"

// ErrNotMade says that a part of a scenario ended before doctor had watched it.
var ErrNotMade = errors.New("the scenario did not take place")

// Scenario is a fault that the lab can make.
type Scenario struct {
	ID    string // name on the command line; equal to the cause where there is one scenario of it
	Cause string // the truth: id of a cause, or HealthyCause
	// By is the cause by which the fault is made, where Cause is a consequence of it: it comes first.
	By     string
	Title  string
	Watch  time.Duration // how long doctor watches; 0: DefaultWatch
	Args   []string      // more arguments for doctor
	Server servers.Name  // version of the server, where the fault needs a certain one
	// Fixes are the ids of the steps of a fix that can be carried out here: commands on what Make has started, settings
	// and changes by Lab.Fixed in Make.
	Fixes []string
	// Unproven says why the lab cannot prove a fix of it, where Fixes is empty.
	Unproven string
	// Make makes the fault and returns when it is under way. What it starts through the Lab ends with the Lab.
	Make func(ctx context.Context, l *Lab) (Scene, error)
}

// DefaultWatch is how long doctor watches a scenario.
const DefaultWatch = 8 * time.Second

// Scene is what doctor is to watch.
type Scene struct {
	Target string   // HOST:PORT or URL
	Args   []string // more arguments for doctor, which are known only now
}
