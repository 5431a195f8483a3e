package recording

import (
	_ "embed"
	"regexp"
	"strings"
)

// UnknownCommand is the name of a command that may not be kept.
const UnknownCommand = "UNKNOWN"

// commandNames are the commands of Redis 5 to 8.0 and Valkey 8.1 (COMMAND LIST), and those of newer versions and of
// other servers that are known.
//
//go:embed command_names.txt
var commandNames string

var (
	knownCommands = wordsOf(commandNames)
	ofModule      = regexp.MustCompile(`^[A-Z]{1,12}\.[A-Z_]{1,24}$`) // FT.SEARCH
	subcommand    = regexp.MustCompile(`^[A-Z_-]{2,24}$`)
)

func wordsOf(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(text) {
		out[w] = true
	}
	return out
}

// CommandName is what a recording keeps of the name of a command as a client sent it: the name in capitals if a server
// or a module has such a command, else UnknownCommand. A command that was renamed so that nobody can guess its name
// (rename-command) would be given away, and what is no command may be anything.
func CommandName(name string) string {
	name = strings.ToUpper(name)
	if knownCommands[name] || ofModule.MatchString(name) {
		return name
	}
	return UnknownCommand
}

// SubcommandName is a subcommand in capitals if it can be one, else empty. It is for commands that have them.
func SubcommandName(name string) string {
	if name = strings.ToUpper(name); subcommand.MatchString(name) {
		return name
	}
	return ""
}

// CommandNameCut is CommandName for the first n bytes of a name.
func CommandNameCut(name string, n int) string {
	if known := CommandName(name); len(name) < n || known != UnknownCommand {
		return known
	}
	for k := range knownCommands {
		if len(k) > n && k[:n] == strings.ToUpper(name) {
			return k[:n]
		}
	}
	return UnknownCommand
}
