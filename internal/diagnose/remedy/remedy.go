// Package remedy knows what each client library offers against a mechanism: which option, in which version, with which
// value. It is a table, remedies.tsv.
package remedy

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
)

// Topic is what a remedy does.
type Topic string

// Topics of remedies.tsv.
const (
	WarmPool             Topic = "warm-pool"               // open connections before they are needed
	OneDialAtATime       Topic = "one-dial-at-a-time"      // a pool that holds its lock while it dials
	KeepConnections      Topic = "keep-connections"        // dial less often
	SurviveFailover      Topic = "survive-failover"        // retry for longer than a failover takes
	SplitCalls           Topic = "split-calls"             // do not wait for all nodes at once
	LeaveOutSetInfo      Topic = "leave-out-setinfo"       // no CLIENT SETINFO in the handshake
	BoundRetries         Topic = "bound-retries"           // a limit for all attempts of a call
	RetryDefaults        Topic = "retry-defaults"          // what a library does when nothing is set; not a remedy
	CacheHotKeys         Topic = "cache-hot-keys"          // keep hot keys in the callers, read from replicas
	FetchMapLess         Topic = "fetch-map-less"          // fewer refreshes of the cluster map
	FetchMapInBackground Topic = "fetch-map-in-background" // no call waits for a map refresh
	ReplyTimeout         Topic = "reply-timeout"           // a timeout for each reply
	LargerPool           Topic = "larger-pool"             // {connections}
	LongerScans          Topic = "longer-scans"
	PoolSizeOption       Topic = "pool-size-option"   // the option alone, without a value
	SmallerPool          Topic = "smaller-pool"       // {connections}
	KeepIdle             Topic = "keep-idle"          // keep some idle connections
	LongerLifetime       Topic = "longer-lifetime"    // close no connection for its age
	ReturnConnections    Topic = "return-connections" // return every connection
	LargerIdleLimit      Topic = "larger-idle-limit"  // {connections} may be idle
	TestIdleOnly         Topic = "test-idle-only"     // no PING before each use
	SpreadReconnects     Topic = "spread-reconnects"  // jitter
	FollowMaster         Topic = "follow-master"      // send writes to the current master
	AvoidUnreadyNode     Topic = "avoid-unready-node" // avoid a node that refuses calls
	OneClient            Topic = "one-client"         // one client object per process
	// an idle limit below that of the server: {seconds}, {milliseconds}
	CloseFirst        Topic = "close-first"
	LeaveSilentMaster Topic = "leave-silent-master" // notice that a master is gone
	LongerTimeout     Topic = "longer-timeout"      // wait longer than healthy calls take
	UnblockEventLoop  Topic = "unblock-event-loop"  // by runtime: python, node, java, ruby
	MoveSlots         Topic = "move-slots"          // by proxy: what it offers to migrate slots without a stall
)

// Values replace the names in braces in a text.
type Values map[string]int

// Row is what one library offers: a row of the table. With an Option it is a setting, else a change that Text tells.
type Row struct {
	Library, Version, Option, To, Text string
}

// step is a row as a step of a topic.
func (e Row) step(topic Topic, values Values) Step {
	s := Step{
		ID: string(topic), Kind: Change, Library: displayed(e.Library), Text: fill(e.Text, values),
		Restart: "the application",
	}
	if e.Option != "" {
		s.Kind, s.Option, s.To = Setting, e.Option, fill(e.To, values)
	}
	return s
}

// displayed is how a library writes its own name.
func displayed(library string) string {
	switch library {
	case "jedis", "lettuce", "redisson", "predis", "codis", "python", "node", "java", "ruby":
		return strings.ToUpper(library[:1]) + library[1:]
	case "stackexchange":
		return "StackExchange.Redis"
	case anyLibrary:
		return ""
	}
	return library
}

// key is the library, followed by the version if the row has one.
func (e Row) key() string {
	if e.Version == "" {
		return e.Library
	}
	return e.Library + "@" + e.Version
}

//go:embed remedies.tsv
var text string

var table = parse(text)

// parse reads the table; tests check that every row is well formed.
func parse(text string) map[Topic][]Row {
	out := map[Topic][]Row{}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || len(f) != 6 {
			continue
		}
		out[Topic(f[0])] = append(out[Topic(f[0])], Row{f[1], f[2], f[3], f[4], f[5]})
	}
	return out
}

// fill puts values into a text.
func fill(text string, values Values) string {
	for name, v := range values {
		text = strings.ReplaceAll(text, "{"+name+"}", strconv.Itoa(v))
	}
	return text
}

// toFill is a name in braces in a text.
var toFill = regexp.MustCompile(`\{([a-z]+)\}`)

// Texts are those of a topic for all libraries. What For fills in is in capitals: CONNECTIONS.
func Texts(topic Topic) (texts []string) {
	for _, e := range table[topic] {
		texts = append(texts, toFill.ReplaceAllStringFunc(e.step(topic, nil).Sentence(),
			func(s string) string { return strings.ToUpper(strings.Trim(s, "{}")) }))
	}
	return texts
}

// Defaults says what the library that a client of the node names, by CLIENT SETINFO, does by default; empty where that
// is not known.
func Defaults(n *facts.Node) string {
	for _, c := range caller.DistinctClients(n, func(c caller.Client) bool { return c.LibName != "" }) {
		for _, e := range table[RetryDefaults] {
			major, minor, _ := strings.Cut(e.Version, ".")
			if strings.HasPrefix(strings.ToLower(c.LibName), e.Library) &&
				facts.VersionAtLeast(c.LibVer, number(major), number(minor)) {
				return fmt.Sprintf("%s %s %s", c.LibName, c.LibVer, e.Text)
			}
		}
	}
	return ""
}

// number is the number in a text; 0 for an empty one.
func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
