package main

import (
	"strings"

	"github.com/spf13/cobra"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/servers"
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
				return usagef("completion takes one SHELL: bash, zsh or fish")
			}
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			}
			return usagef("completion %q: give bash, zsh or fish", args[0])
		},
	}
}

// values are what a word may be completed to, with a tab and what each means where that helps.
type values func() []string

// begin gives the values that begin with a word.
func (v values) begin(word string) (fitting []string) {
	for _, text := range v() {
		if strings.HasPrefix(text, word) {
			fitting = append(fitting, text)
		}
	}
	return fitting
}

// one completes the first argument alone.
func (v values) one(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return v.begin(word), cobra.ShellCompDirectiveNoFileComp
}

// many completes each argument, where nothing fits to the name of a file.
func (v values) many(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	return v.begin(word), cobra.ShellCompDirectiveDefault
}

// list completes the last of several values with commas between them. What they mean is left out: with it cobra's
// script for bash compares values in which commas are escaped, and none fits.
func (v values) list(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	before, last := "", word
	if i := strings.LastIndexByte(word, ','); i >= 0 {
		before, last = word[:i+1], word[i+1:]
	}
	var out []string
	for _, text := range v.begin(last) {
		value, _, _ := strings.Cut(text, "\t")
		out = append(out, before+value)
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func words(list ...string) values { return func() []string { return list } }

func names[N ~string](known func() []N) values {
	return func() (list []string) {
		for _, n := range known() {
			list = append(list, string(n))
		}
		return list
	}
}

var (
	causeIDs values = func() (list []string) {
		for _, c := range cause.Catalogue() {
			list = append(list, c.ID+"\t"+c.Title)
		}
		return list
	}
	serversHere values = func() (list []string) {
		for _, s := range foundServers() {
			list = append(list, s.address+"\t"+s.String())
		}
		return list
	}
	commandNames = values(func() []string {
		return append(workload.CommandNames(), "KEYS", "FLUSHALL", "FLUSHDB", "EVAL", "CONFIG", "CLUSTER")
	})
	knownServers = names(servers.Known)
	knownClients = names(clients.Known)
)

// completions are those of arguments, by command.
var completions = map[string]cobra.CompletionFunc{
	"doctor": serversHere.many, "record": serversHere.many, "probe": serversHere.many, "trace": serversHere.many,
	"top": serversHere.many, "bench": serversHere.many, "topology": serversHere.many,
	"topology watch":    serversHere.many,
	"topology simulate": serversHere.one, "compare": serversHere.many, "explain": causeIDs.one,
	"lab run":     values(scenariosTold).one,
	"lab servers": knownServers.many, "lab clients build": knownClients.many, "lab clients run": knownClients.one,
	"lab apps build": values(knownApps).many, "lab apps run": values(knownApps).one,
}

// flagCompletions are those of flags, by name; a flag of this name has these values in every command.
var flagCompletions = map[string]cobra.CompletionFunc{
	"command": commandNames.list, "segment": values(trace.SegmentNames).many, "slow": words(slowAuto).many,
	"profile": words("cpu").many, "clients": knownClients.list,
	"servers": knownServers.list, "server": knownServers.many, "only": values(scenariosTold).list,
	"arrivals": words("uniform", "poisson").many, "pipeline-mode": words("window", "batch").many,
	"read-from": words("master", "replica", "any").many, "mode": words("standalone", "cluster", "ring").many,
	"proxy": words("twemproxy", "haproxy", "envoy", "codis").many, "topology": words("standalone", "cluster").list,
	"key-distribution": words("uniform", "zipf", "latest", "gaussian", "sequential").many,
	"change":           words("slots", "failover", "hang", "rejoin", "none").many,
	"policy":           values(simulate.Presets).many,
	"steps":            words("connect", "auth", "ping", "get", "set", "del").list,
}

// complete gives the commands below root what their arguments and flags are completed to.
func complete(c *cobra.Command, path string) {
	if f, is := completions[path]; is {
		c.ValidArgsFunction = f
	}
	for name, f := range flagCompletions {
		if flag := c.Flags().Lookup(name); flag != nil && flag.Value.Type() != "int" {
			_ = c.RegisterFlagCompletionFunc(name, f) // the flag exists, and has no other
		}
	}
	for _, sub := range c.Commands() {
		complete(sub, strings.TrimSpace(path+" "+sub.Name()))
	}
}
