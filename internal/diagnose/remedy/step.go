package remedy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is how a step is carried out.
type Kind string

// Kinds of steps.
const (
	// Command is a complete line for a shell.
	Command Kind = "command"
	// Setting is an option of a library, a server or the system, which is set where that is configured.
	Setting Kind = "setting"
	// Change is anything else: code, data, a version, a machine.
	Change Kind = "change"
)

// Step is one thing to do against a cause.
type Step struct {
	// ID names what is done, the same for all systems: the lab's proof of it is found by it (docs/fixes.md).
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Text says in a sentence what to do; of a setting what more is to be known.
	Text string `json:"text"`
	// Command can be pasted into a shell, with real process ids, users, paths and addresses, all quoted. What could not
	// be filled in is in Asks: then it is no command yet.
	Command string `json:"command,omitempty"`
	// Library is whose option it is: a client library, a server, a proxy or the kernel.
	Library string `json:"library,omitempty"`
	Option  string `json:"option,omitempty"`
	From    string `json:"from,omitempty"` // the present value; empty where it is not known
	To      string `json:"to,omitempty"`
	// Where says on which host, in which file or in whose configuration; empty where the command or the text does.
	Where string `json:"where,omitempty"`
	// Undo takes it back: a command where Command is one, else a sentence. Empty: as the text says, the other way
	// round.
	Undo string `json:"undo,omitempty"`
	// Risk is what else it changes; empty where nothing is known to.
	Risk string `json:"risk,omitempty"`
	// Restart is what must be restarted for it, such as "the application"; empty: nothing.
	Restart string `json:"restart,omitempty"`
	// Since is the version from which it exists; empty: all that are in use.
	Since string `json:"since,omitempty"`
	// Or: it is instead of the step before it, not besides.
	Or bool `json:"or,omitempty"`
	// Asks are the parts that only the user knows, as they are written in Command and Text: <the user of your
	// application>.
	Asks []string `json:"asks,omitempty"`
	// Proof is what the lab measured of it.
	Proof *Proof `json:"proof,omitempty"`
}

// CureSlowNode is the id of a step that another finding says more about: why that node is slow.
const CureSlowNode = "cure-slow-node"

// unknown is a part of a step that only the user knows.
var unknown = regexp.MustCompile(`<[a-z][^<>\n]*>`)

// Finish fills in what follows from the other fields: the unknown parts.
func (s Step) Finish() Step {
	s.Asks = nil
	for _, text := range []string{s.Command, s.To, s.Text} {
		for _, part := range unknown.FindAllString(text, -1) {
			if !slices.Contains(s.Asks, part) {
				s.Asks = append(s.Asks, part)
			}
		}
	}
	return s
}

// Complete reports whether the step is a command that can be pasted.
func (s Step) Complete() bool { return s.Kind == Command && len(s.Asks) == 0 }

// Sentence is the step without its command: what it does, and what is set to what.
func (s Step) Sentence() string {
	if s.Kind != Setting {
		return s.of(s.Text)
	}
	set := "set " + s.Option + " to " + s.To
	if s.From != "" && s.From != s.To {
		set = "change " + s.Option + " from " + s.From + " to " + s.To
	}
	switch first, _ := utf8.DecodeRuneInString(s.Text); {
	case s.Text == "":
	case unicode.IsUpper(first):
		set += ". " + s.Text
	default:
		set += "; " + s.Text
	}
	return s.of(set)
}

// of says whose an option or a change is.
func (s Step) of(text string) string {
	if s.Library == "" || s.Kind == Command {
		return text
	}
	return s.Library + ": " + text
}

// Lines are the step as lines of text: its sentence, and its command.
func (s Step) Lines() (lines []string) {
	if text := s.Sentence(); text != "" {
		lines = append(lines, text)
	}
	if s.Command != "" {
		lines = append(lines, s.Command)
	}
	return lines
}

// Lines are those of several steps, without repetitions.
func Lines(steps []Step) []string {
	out := []string{}
	for _, s := range steps {
		for _, l := range s.Lines() {
			if !slices.Contains(out, l) {
				out = append(out, l)
			}
		}
	}
	return out
}

// Join adds the steps that are not there yet: those of another node with the same words or the same command.
func Join(steps, more []Step) []Step {
	for _, s := range more {
		if !slices.ContainsFunc(steps, func(o Step) bool {
			return o.ID == s.ID && o.Command == s.Command && o.Sentence() == s.Sentence()
		}) {
			steps = append(steps, s)
		}
	}
	return steps
}

// Check says what is wrong with a step; nil where nothing is.
func (s Step) Check() error {
	switch {
	case !identifier.MatchString(s.ID):
		return fmt.Errorf("step %q: its id has other characters than a-z, 0-9 and -", s.ID)
	case s.Kind == Command && s.Command == "":
		return fmt.Errorf("step %s is a command without a command", s.ID)
	case s.Kind == Command && strings.Contains(s.Command, "…"):
		return fmt.Errorf("step %s: %q cannot be pasted", s.ID, s.Command)
	case s.Kind != Command && s.Command != "":
		return fmt.Errorf("step %s has a command, but is a %s", s.ID, s.Kind)
	case s.Kind == Setting && (s.Option == "" || s.To == ""):
		return fmt.Errorf("step %s sets nothing: option %q to %q", s.ID, s.Option, s.To)
	case s.Kind == Change && s.Text == "":
		return fmt.Errorf("step %s says nothing", s.ID)
	case !slices.Contains([]Kind{Command, Setting, Change}, s.Kind):
		return fmt.Errorf("step %s is of no kind: %q", s.ID, s.Kind)
	}
	return nil
}

var identifier = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
