package remedy

import (
	"slices"
	"strings"
	"testing"
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

// TestJoin: the steps of several nodes, each once.
func TestJoin(t *testing.T) {
	one := []Step{{ID: "wake", Kind: Command, Command: "kill -CONT 7"}, {ID: "b", Kind: Change, Text: "b"}}
	two := []Step{{ID: "wake", Kind: Command, Command: "kill -CONT 8"}, {ID: "b", Kind: Change, Text: "b"}}
	if got := Lines(Join(one, two)); !slices.Equal(got, []string{"kill -CONT 7", "b", "kill -CONT 8"}) {
		t.Errorf("%q", got)
	}
}
