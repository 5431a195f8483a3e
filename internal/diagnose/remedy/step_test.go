package remedy

import (
	"slices"
	"strings"
	"testing"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

func TestStepCheck(t *testing.T) {
	for want, s := range map[string]Step{
		"":                          {ID: "a", Kind: Command, Command: "kill -CONT 7"},
		"a command without":         {ID: "a", Kind: Command, Text: "wake it"},
		"cannot be pasted":          {ID: "a", Kind: Command, Command: "kill …"},
		"but is a change":           {ID: "a", Kind: Change, Text: "wake it", Command: "kill 7"},
		"sets nothing":              {ID: "a", Kind: Setting, Option: "PoolSize"},
		"says nothing":              {ID: "a", Kind: Change},
		"of no kind":                {ID: "a", Text: "wake it"},
		"other characters than a-z": {ID: "A b", Kind: Change, Text: "wake it"},
	} {
		err := s.Check()
		if want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}

func TestStepWords(t *testing.T) {
	s := Step{
		ID: "larger-pool", Kind: Setting, Library: "go-redis", Option: "PoolSize", From: "3", To: "46",
		Text: "10 per CPU by default",
	}
	if got := s.Sentence(); got != "go-redis: change PoolSize from 3 to 46; 10 per CPU by default" {
		t.Error(got)
	}
	s.From, s.Text = "", "Restart one process first"
	if got := s.Sentence(); got != "go-redis: set PoolSize to 46. Restart one process first" {
		t.Error(got)
	}
	asks := Step{ID: "forbid", Kind: Command, Command: "ACL SETUSER <the user of your application> -keys"}.Finish()
	if !slices.Equal(asks.Asks, []string{"<the user of your application>"}) || asks.Complete() {
		t.Errorf("%+v", asks)
	}
	if s := (Step{ID: "a", Kind: Command, Command: "cat < /proc/7/status > /tmp/x"}).Finish(); !s.Complete() {
		t.Errorf("%q is asked for", s.Asks)
	}
}

// TestNamesAreQuoted: what a user or a command of others is called is one word of a command, also where it looks like a
// part that is asked for.
func TestNamesAreQuoted(t *testing.T) {
	rec := recording.New()
	rec.Meta[recording.MetaServer], rec.Meta[recording.MetaNodes] = "redis 7.0.15", `["127.0.0.1:6379"]`
	rec.Index()
	n := facts.New(rec).Nodes[0]
	for _, name := range []string{"<a>;reboot", "<the>", "$(reboot)", "<a b>`reboot`", "it's"} {
		s, ok := Forbid(n, "KEYS", name)
		if want := "redis-cli -p 6379 ACL SETUSER " + format.Shell(name) + " -keys"; !ok || s.Command != want {
			t.Errorf("%q, want %q", s.Command, want)
		}
	}
	s, ok := Forbid(n, "KEYS", "")
	if s = s.Finish(); !ok || s.Complete() ||
		s.Command != "redis-cli -p 6379 ACL SETUSER <the user of your application> -keys" {
		t.Errorf("%+v", s)
	}
}

// TestForbidSubcommand: ACL refuses -client|pause before 7.0.
func TestForbidSubcommand(t *testing.T) {
	for server, want := range map[string]bool{"redis 6.2.14": false, "redis 7.0.15": true, "valkey 8.1.1": true} {
		rec := recording.New()
		rec.Meta[recording.MetaServer], rec.Meta[recording.MetaNodes] = server, `["127.0.0.1:6379"]`
		rec.Index()
		if s, ok := Forbid(facts.New(rec).Nodes[0], "CLIENT PAUSE", "app"); ok != want {
			t.Errorf("%s: %v, %q", server, ok, s.Command)
		}
	}
}

// TestStepsOfEachServer: where several servers are watched the steps of each node are those of its own server.
func TestStepsOfEachServer(t *testing.T) {
	const old, fork = "127.0.0.1:6379", "127.0.0.1:6380"
	rec := recording.New()
	rec.Meta = recording.NodeMetas([]string{old, fork}, map[string]recording.NodeServer{
		old: {Server: "redis 5.0.6"}, fork: {Server: "valkey 8.1.1"},
	})
	rec.Index()
	for _, n := range facts.New(rec).Nodes {
		s, _ := Forbid(n, "KEYS", "app")
		want := map[string]string{old: "", fork: "valkey-cli -p 6380 ACL SETUSER app -keys"}[n.Address]
		if s.Command != want || facts.ServerAtLeast(n, 6, 0) != (n.Address == fork) {
			t.Errorf("%s: %q, want %q", n.Address, s.Command, want)
		}
	}
	if got := rec.Meta[recording.MetaServer]; got != "redis 5.0.6, valkey 8.1.1" {
		t.Errorf("together they are %q", got)
	}
}

// TestJoin: the steps of several nodes, each once.
func TestJoin(t *testing.T) {
	one := []Step{{ID: "wake", Kind: Command, Command: "kill -CONT 7"}, {ID: "b", Kind: Change, Text: "b"}}
	two := []Step{{ID: "wake", Kind: Command, Command: "kill -CONT 8"}, {ID: "b", Kind: Change, Text: "b"}}
	if got := Lines(Join(one, two)); !slices.Equal(got, []string{"kill -CONT 7", "b", "kill -CONT 8"}) {
		t.Errorf("%q", got)
	}
}
