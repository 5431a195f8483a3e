//go:build linux

package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/lab/apps"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
)

var (
	knownServers = cli.Names(servers.Known)
	knownClients = cli.Names(clients.Known)
	knownApps    = cli.Names(apps.Known)
)

// scenariosTold are the ids of scenarios with what each is.
var scenariosTold cli.Values = func() (list []string) {
	for _, sc := range scenario.Catalogue() {
		list = append(list, sc.ID+"\t"+sc.Title)
	}
	return list
}

// completions are those of arguments, by command.
var completions = map[string]cobra.CompletionFunc{
	"run": scenariosTold.One, "servers": knownServers.Many,
	"clients build": knownClients.Many, "clients run": knownClients.One,
	"apps build": knownApps.Many, "apps run": knownApps.One,
}

// flagCompletions are those of flags, by name; a flag of this name has these values in every command.
var flagCompletions = map[string]cobra.CompletionFunc{
	"clients": knownClients.List, "servers": knownServers.List, "server": knownServers.Many,
	"only":     scenariosTold.List,
	"mode":     cli.Words("standalone", "cluster", "ring").Many,
	"proxy":    cli.Words("twemproxy", "haproxy", "envoy", "codis").Many,
	"topology": cli.Words("standalone", "cluster").List,
}
