package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/load/workload"
	"slowpath/internal/topology/simulate"
	"slowpath/internal/trace"
)

// shells are those that completion writes a script for.
var shells = []string{"bash", "zsh", "fish"}

func (a *app) completion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "A script by which bash, zsh or fish complete commands, flags and their values",
		Long: `completion prints a script for bash (with its package bash-completion), zsh or fish. With it, TAB
completes commands and flags, the servers that listen on this host, causes, scenarios of the lab, commands of
Redis, and names of client libraries and server versions.`,
		Example: `  slowpath completion bash > /etc/bash_completion.d/slowpath
  slowpath completion zsh > /usr/local/share/zsh/site-functions/_slowpath
  slowpath completion fish > ~/.config/fish/completions/slowpath.fish`,
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("completion takes one SHELL: bash, zsh or fish")
			}
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.Stdout)
			case "fish":
				return root.GenFishCompletion(a.Stdout, true)
			}
			return cli.Usagef("completion %q: give bash, zsh or fish", args[0])
		},
	}
}

var (
	causeIDs cli.Values = func() (list []string) {
		for _, c := range cause.Catalogue() {
			list = append(list, c.ID+"\t"+c.Title)
		}
		return list
	}
	serversHere cli.Values = func() (list []string) {
		for _, s := range named.Servers() {
			list = append(list, s.Address+"\t"+s.String())
		}
		return list
	}
	commandNames = cli.Values(func() []string {
		return append(workload.CommandNames(), "KEYS", "FLUSHALL", "FLUSHDB", "EVAL", "CONFIG", "CLUSTER")
	})
)

// completions are those of arguments, by command.
var completions = map[string]cobra.CompletionFunc{
	"doctor": serversHere.Many, "record": serversHere.Many, "probe": serversHere.Many, "trace": serversHere.Many,
	"top": serversHere.Many, "bench": serversHere.Many, "topology": serversHere.Many,
	"topology watch":    serversHere.Many,
	"topology simulate": serversHere.One, "compare": serversHere.Many, "explain": causeIDs.One,
}

// flagCompletions are those of flags, by name; a flag of this name has these values in every command.
var flagCompletions = map[string]cobra.CompletionFunc{
	"command": commandNames.List, "segment": cli.Values(trace.SegmentNames).Many, "slow": cli.Words(cli.SlowAuto).Many,
	"profile":  cli.Words("cpu", profileOff).Many,
	"arrivals": cli.Words("uniform", "poisson").Many, "pipeline-mode": cli.Words("window", "batch").Many,
	"read-from":        cli.Words("master", "replica", "any").Many,
	"key-distribution": cli.Words("uniform", "zipf", "latest", "gaussian", "sequential").Many,
	"change":           cli.Words("slots", "failover", "hang", "rejoin", "none").Many,
	"policy":           cli.Values(simulate.Presets).Many,
	"steps":            cli.Words("connect", "auth", "ping", "get", "set", "del").List,
}
