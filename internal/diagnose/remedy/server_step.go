package remedy

import (
	"net"
	"regexp"
	"slices"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/format"
)

// onlyInFile are parameters that CONFIG SET refuses ("can't set immutable config"): the server reads them when it
// starts.
var onlyInFile = []string{
	"aof_rewrite_cpulist", "bgsave_cpulist", "bio_cpulist", "cluster-enabled", "databases",
	"disable-thp", "io-threads", "io-threads-do-reads", "rename-command", "server_cpulist", "tcp-backlog", "unixsocket",
}

// asked is a whole word that stands for what only the user knows. It has spaces, which no name of a user or a command
// has: what others are called is always quoted.
var asked = regexp.MustCompile(`^<[a-z]+( [A-Za-z]+)+>$`)

// CLI is a command of a node's server as a complete line for a shell, on a host from which the node's address is
// reached. Passwords are not in it: redis-cli takes them from REDISCLI_AUTH, or asks.
func CLI(n *facts.Node, words ...string) string {
	line := "redis-cli"
	if strings.HasPrefix(n.Server(), "valkey") {
		line = "valkey-cli"
	}
	switch host, port, err := net.SplitHostPort(n.Address); {
	case strings.HasPrefix(n.Address, "/"):
		line += " -s " + format.Shell(n.Address)
	case err == nil:
		if host != "127.0.0.1" {
			line += " -h " + format.Shell(host)
		}
		line += " -p " + port
	}
	if connection.ConnectionCostOf(n).TLS {
		line += " --tls"
	}
	for _, w := range words {
		if !asked.MatchString(w) {
			w = format.Shell(w)
		}
		line += " " + w
	}
	return line
}

// ConfigSet sets a parameter of a node's server: by CONFIG SET, with its undo, or in the server's configuration file
// where it must be restarted for it. why is the step's text.
func ConfigSet(n *facts.Node, id, parameter, value, why string) Step {
	now, known := n.Config(parameter)
	if slices.Contains(onlyInFile, parameter) {
		return Step{
			ID: id, Kind: Setting, Text: why, Library: "server", Option: parameter, From: now, To: value,
			Where: "redis.conf of " + n.Address, Restart: "the server",
		}
	}
	s := Step{
		ID: id, Kind: Command, Text: why, Option: parameter, From: now, To: value,
		Command: CLI(n, "CONFIG", "SET", parameter, value),
		Risk:    "a restart forgets it, unless CONFIG REWRITE or redis.conf keeps it",
	}
	if known {
		s.Undo = CLI(n, "CONFIG", "SET", parameter, now)
	}
	return s
}

// Risking is the step with what else it changes before its other risks.
func (s Step) Risking(what string) Step {
	if s.Risk != "" {
		what += "; " + s.Risk
	}
	s.Risk = what
	return s
}

// Forbid takes a command away from the ACL user that sends it. user is empty where it is not known. Servers before 6.0
// have no users. ok is false for a subcommand before 7.0: ACL cannot forbid it alone there, and all of CLIENT or
// CLUSTER is what libraries need.
func Forbid(n *facts.Node, command, user string) (s Step, ok bool) {
	name, _, subcommand := strings.Cut(command, " ")
	switch {
	case subcommand && !facts.ServerAtLeast(n, 7, 0):
		return Step{}, false
	case !facts.ServerAtLeast(n, 6, 0):
		return Step{
			ID: "forbid-command", Kind: Setting, Or: true, Library: "server", Option: "rename-command",
			To: format.Shell(name) + ` ""`, Where: "redis.conf of " + n.Address, Restart: "the server",
			Text: "Nobody can send it then", Risk: "every caller gets an error for it, also operators",
		}, true
	}
	rule := strings.ToLower(strings.ReplaceAll(command, " ", "|"))
	whose := "user " + format.Name(user)
	if user == "" {
		user, whose = "<the user of your application>", "the user of your application"
	}
	return Step{
		ID: "forbid-command", Kind: Command, Or: true, Text: "Forbid it to " + whose,
		Command: CLI(n, "ACL", "SETUSER", user, "-"+rule),
		Undo:    CLI(n, "ACL", "SETUSER", user, "+"+rule),
		Risk: "each caller that logs in as that user gets an error for it; a restart forgets it, unless ACL SAVE or " +
			"redis.conf keeps it",
		Since: "Redis 6.0",
	}, true
}
