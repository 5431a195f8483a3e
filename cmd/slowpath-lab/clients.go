//go:build linux

package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/lab/clients"
)

func (a *app) clients() *cobra.Command {
	c := listing(a, &cobra.Command{
		Use:   "clients",
		Short: "List, build and run real client libraries",
		Long: "clients are small programs on public client libraries, each in the version that it names. They are " +
			"built into a cache on first use. docs/clients.md has the protocol for a program of your own.",
		Example: `  slowpath lab clients
  slowpath lab clients build go-redis-v6 jedis
  slowpath lab clients run go-redis-v9 127.0.0.1:6379 --workers 50 --for 5s`,
	}, clients.ListSchema, clients.OpenCache)
	c.AddCommand(building(a, &cobra.Command{
		Use:     "build [NAME...]",
		Short:   "Build client programs into the cache",
		Example: "  slowpath lab clients build go-redis-v6 redis-py",
	}, programWidth, clients.Known, clients.Lookup, clients.OpenCache, toldMissing[clients.Program]), a.clientsRun())
	return c
}
