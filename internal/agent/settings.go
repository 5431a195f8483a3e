package agent

import (
	"errors"
	"fmt"
	"time"

	"slowpath/internal/agent/incidents"
	"slowpath/internal/source"
	"slowpath/internal/wire/target"
)

// Settings are what the command line and the configuration file say. Reload takes new ones.
type Settings struct {
	// Named are the servers that are watched; empty: those that are found on this host.
	Named []string
	// Targets makes addresses to targets, with the login and TLS of the configuration.
	Targets func(addresses []string) ([]target.Target, error)
	Watch   source.Options // how they are watched; its Targets, For and functions are the agent's

	RingKeep  time.Duration // how much is kept in full detail
	RingBytes int64         // on disk, at most

	Incidents    incidents.Limits
	HistoryKeep  time.Duration // of minutes
	HistoryBytes int64

	Goals    []Goal
	Off      map[Kind]bool // triggers that are switched off
	Before   time.Duration // of an incident's trigger, in its recording
	After    time.Duration // at least so long after it
	Longest  time.Duration // and at most so long, however long it goes on
	CoolDown time.Duration // without a trigger, before the next one is a new incident

	CPUBudget float64 // of slowpath itself, in parts of a core: 0.01; 0: no limit
	Memory    int64   // bytes of this process, at most
}

// Defaults of Settings.
const (
	DefaultRingKeep    = 15 * time.Minute
	DefaultMaxDisk     = 512 << 20 // bytes of all that is kept
	DefaultMaxAge      = 30 * 24 * time.Hour
	DefaultHistoryKeep = 7 * 24 * time.Hour
	DefaultBefore      = time.Minute
	DefaultAfter       = 15 * time.Second
	DefaultLongest     = 2 * time.Minute
	DefaultCoolDown    = time.Minute
	DefaultCPUBudget   = 0.01
	DefaultMemory      = 64 << 20
	// DefaultProbeRate is low: the agent's own calls only say what there is where no client calls.
	DefaultProbeRate = 1.0
)

// Bounds of Settings.
const (
	leastDisk      = 64 << 20
	mostDisk       = 1 << 40
	leastMemory    = 48 << 20
	mostLongest    = 10 * time.Minute
	mostCoolDown   = 24 * time.Hour
	leastRingSpare = time.Minute // the ring must have more than an incident takes, or its begin is gone
)

// DivideDisk shares the disk: incidents are what is kept longest, the ring what is written most.
func (s *Settings) DivideDisk(bytes int64) {
	s.HistoryBytes = bytes / 16
	s.RingBytes = bytes * 3 / 8
	s.Incidents.MaxBytes = bytes - s.HistoryBytes - s.RingBytes
}

func (s *Settings) disk() int64 { return s.HistoryBytes + s.RingBytes + s.Incidents.MaxBytes }

// Check refuses settings that cannot work together. Its error is one line that ends in the fix.
func (s *Settings) Check() error {
	switch {
	case s.After <= 0 || s.After > s.Longest:
		return fmt.Errorf("--after %v: give a time from 1s to --longest, which is %v", s.After, s.Longest)
	case s.Longest > mostLongest:
		return fmt.Errorf("--longest %v: give at most %v", s.Longest, mostLongest)
	case s.Before < 0:
		return fmt.Errorf("--before %v: must not be negative", s.Before)
	case s.CoolDown < 0 || s.CoolDown > mostCoolDown:
		return fmt.Errorf("--cool-down %v: give a time up to %v", s.CoolDown, mostCoolDown)
	case s.RingKeep < s.Before+s.Longest+leastRingSpare:
		return fmt.Errorf("--ring %v: it must hold a whole incident, --before and --longest and a minute more; give "+
			"at least %v", s.RingKeep, s.Before+s.Longest+leastRingSpare)
	case s.disk() < leastDisk || s.disk() > mostDisk:
		return errors.New("--max-disk: give a size from 64MB to 1024GB")
	case s.Memory < leastMemory:
		return fmt.Errorf("--memory: give at least %dMB", leastMemory>>20)
	case !(s.CPUBudget >= 0 && s.CPUBudget <= 1):
		return errors.New("--cpu-budget: give percent of a core from 0 (no limit) to 100")
	}
	return nil
}

// needRestart lists what differs in new settings, and is read only at the start.
func (s *Settings) needRestart(n *Settings) (flags []string) {
	for name, differs := range map[string]bool{
		"slow": s.Watch.Slow != n.Watch.Slow, "ring": s.RingKeep != n.RingKeep,
		"max-disk": s.disk() != n.disk(),
		"max-age":  s.Incidents.MaxAge != n.Incidents.MaxAge, "history": s.HistoryKeep != n.HistoryKeep,
	} {
		if differs {
			flags = append(flags, name)
		}
	}
	return flags
}
