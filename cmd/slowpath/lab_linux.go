package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/cli"
)

// labProgram has the lab, which no production host needs.
const labProgram = "slowpath-lab"

func (a *app) lab() *cobra.Command {
	c := cli.CommandBeside("lab", shortLab, labProgram)
	c.Example = "  slowpath lab run server-cfs-throttled"
	return c
}

func (a *app) matrix() *cobra.Command {
	c := cli.CommandBeside("matrix", shortMatrix, labProgram, "matrix")
	c.Example = "  slowpath matrix --clients jedis,rueidis --quick"
	return c
}
