// Package simulate predicts, for policies by which clients refresh the map of their cluster, how long they have an old
// one after a change, and what that costs the servers. It opens no connection.
package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/topology/cost"
)

// Trigger is an event after which a client refreshes its map.
type Trigger string

// The triggers.
const (
	OnMoved     Trigger = "moved"
	OnAsk       Trigger = "ask"
	OnReconnect Trigger = "reconnect" // a node cannot be reached again and again
	OnUncovered Trigger = "uncovered" // a call to a slot that has no node in the client's map
	OnUnknown   Trigger = "unknown"   // MOVED names a node that is not in the client's map
)

var allTriggers = []Trigger{OnMoved, OnAsk, OnReconnect, OnUncovered, OnUnknown}

// Asked says which nodes a refresh asks.
type Asked string

// Whom a refresh asks.
const (
	AskOne        Asked = "one"        // one at random; the next if it is not reached
	AskRedirector Asked = "redirector" // the node that answered MOVED; else as one
	AskSeeds      Asked = "seeds"      // all seeds
	AskMasters    Asked = "masters"
	AskReplicas   Asked = "replicas"
	AskAll        Asked = "all"
)

var allAsked = []Asked{AskOne, AskRedirector, AskSeeds, AskMasters, AskReplicas, AskAll}

// Choice says which of several answers becomes the client's map. Where several are as good, one at random does.
type Choice string

// The choices.
const (
	ChooseFirst     Choice = "first"     // that came
	ChooseKnown     Choice = "known"     // with most of the nodes that the client knows
	ChooseReachable Choice = "reachable" // with most nodes that are not marked as failed
	ChooseEpoch     Choice = "epoch"     // with the newest epoch
)

var allChoices = []Choice{ChooseFirst, ChooseKnown, ChooseReachable, ChooseEpoch}

// Policy is how a client keeps its map.
type Policy struct {
	Name     string        `json:"name"`
	Period   time.Duration `json:"period_ns"` // 0: none
	On       []Trigger     `json:"on"`
	Every    int           `json:"every_moved"` // MOVED triggers at each n-th; 0 as 1
	Attempts int           `json:"reconnect_attempts"`
	// Pause is the time before the first attempt to reconnect. It doubles up to PauseMost.
	Pause     time.Duration `json:"reconnect_pause_ns"`
	PauseMost time.Duration `json:"reconnect_pause_most_ns"`
	// CallTimeout: a call that is not answered for so long closes its connection, which is an attempt; 0: never
	CallTimeout time.Duration `json:"call_timeout_ns"`
	// Guard is the least time between two triggered refreshes: from the start of the first, or with Deferred from its
	// end.
	Guard time.Duration `json:"guard_ns"`
	// Deferred: a trigger within Guard is made up for at its end; else it is lost.
	Deferred bool          `json:"deferred"`
	Ask      Asked         `json:"ask"`
	Choose   Choice        `json:"choose"`
	Timeout  time.Duration `json:"timeout_ns"` // how long a refresh waits for a node that is silent
	Patch    bool          `json:"patch"`      // MOVED corrects the slot in the client's map
	Push     time.Duration `json:"push_ns"`    // after which changes are published to clients; 0: they are not
	Command  cost.Command  `json:"command"`
}

// presets are as the libraries do it with their defaults (decision 0026 says how that is known); lettuce-6-periodic and
// lettuce-6-adaptive have the options of that name.
var presets = []Policy{
	lettuce("lettuce-6", 0, 0),
	lettuce("lettuce-6-periodic", time.Minute, 0),
	lettuce("lettuce-6-adaptive", 0, 30*time.Second),
	lettuce("lettuce-7", 0, 5*time.Second),
	{
		// clusterStateHolder.LazyReload; connections that fail do not trigger it.
		Name: "go-redis", Period: time.Minute, On: []Trigger{OnMoved, OnAsk}, Guard: 200 * time.Millisecond,
		Deferred: true, Ask: AskOne, Choose: ChooseFirst, Timeout: 3 * time.Second, Command: cost.Slots,
	},
	{
		// ClusterCommandExecutor: after two failed attempts it sleeps for up to 1.1 s, then asks; after two more for up
		// to 9 s.
		Name: "jedis", On: []Trigger{OnMoved, OnReconnect}, Attempts: 1, Pause: 550 * time.Millisecond,
		PauseMost: 4500 * time.Millisecond, CallTimeout: 4 * time.Second, Ask: AskRedirector, Choose: ChooseFirst,
		Timeout: 2 * time.Second, Command: cost.Slots,
	},
	{
		Name: "push", Push: 30 * time.Millisecond, Ask: AskOne, Choose: ChooseFirst, Timeout: 3 * time.Second,
		Command: cost.Slots,
	},
}

// lettuce has triggers with a guard period, or none.
func lettuce(name string, period, guard time.Duration) Policy {
	p := Policy{
		Name: name, Period: period, Guard: guard, Attempts: 3, Pause: 2 * time.Millisecond,
		PauseMost: 30 * time.Second, Ask: AskAll, Choose: ChooseKnown, Timeout: 10 * time.Second, Command: cost.Nodes,
	}
	if guard > 0 {
		p.On = allTriggers
	}
	return p
}

// Presets lists the names of the known policies.
func Presets() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.Name
	}
	return names
}

// ParsePolicy reads NAME[,KEY=VALUE...]: a known policy, with other settings where they are given.
func ParsePolicy(text string) (Policy, error) {
	name, rest, more := strings.Cut(text, ",")
	i := slices.IndexFunc(presets, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		return Policy{}, fmt.Errorf("no policy %q; known: %s", name, strings.Join(Presets(), " "))
	}
	p := presets[i]
	if !more {
		return p, nil
	}
	p.Name = text
	for setting := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(setting, "=")
		if err := p.set(key, value); err != nil {
			return Policy{}, err
		}
	}
	return p, nil
}

// mostTime bounds the times of a policy.
const mostTime = 24 * time.Hour

func (p *Policy) set(key, value string) error {
	times := map[string]*time.Duration{
		"period": &p.Period, "guard": &p.Guard, "timeout": &p.Timeout, "push": &p.Push, "call-timeout": &p.CallTimeout,
		"pause": &p.Pause, "pause-most": &p.PauseMost,
	}
	numbers := map[string]*int{"attempts": &p.Attempts, "every": &p.Every}
	flags := map[string]*bool{"deferred": &p.Deferred, "patch": &p.Patch}
	switch {
	case times[key] != nil:
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 || d > mostTime || d > 0 && d < time.Millisecond {
			return fmt.Errorf("%s=%s: give 0 or a time from 1ms to %v, such as 30s", key, value, mostTime)
		}
		*times[key] = d
	case numbers[key] != nil:
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 1000 {
			return fmt.Errorf("%s=%s: give a number from 1 to 1000", key, value)
		}
		*numbers[key] = n
	case flags[key] != nil:
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%s=%s: give true or false", key, value)
		}
		*flags[key] = on
	case key == "on":
		return p.setTriggers(value)
	case key == "ask":
		return oneOf(key, value, allAsked, &p.Ask)
	case key == "choose":
		return oneOf(key, value, allChoices, &p.Choose)
	case key == "command":
		return oneOf(key, value, cost.Commands, &p.Command)
	default:
		return fmt.Errorf("no setting %q; known: period on every attempts pause pause-most call-timeout guard "+
			"deferred ask choose timeout patch push command", key)
	}
	return nil
}

func (p *Policy) setTriggers(value string) error {
	p.On = nil
	for name := range strings.SplitSeq(value, "+") {
		var t Trigger
		switch name {
		case "none":
			continue
		case "all":
			p.On = allTriggers
			continue
		}
		if err := oneOf("on", name, allTriggers, &t); err != nil {
			return err
		}
		p.On = append(p.On, t)
	}
	return nil
}

func oneOf[T ~string](key, value string, all []T, to *T) error {
	if !slices.Contains(all, T(value)) {
		return fmt.Errorf("%s=%s: known: %v", key, value, all)
	}
	*to = T(value)
	return nil
}

func (p *Policy) has(t Trigger) bool { return slices.Contains(p.On, t) }
