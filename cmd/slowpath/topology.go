package main

import "github.com/spf13/cobra"

func (a *app) topology() *cobra.Command {
	c := &cobra.Command{
		Use:   "topology",
		Short: "The map of a cluster, and its changes",
		Args:  subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.topologyWatch())
	return c
}
