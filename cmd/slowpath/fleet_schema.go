package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/manyhosts"
)

func (a *app) fleetSchema() *cobra.Command {
	var cluster string
	c := &cobra.Command{
		Use:   "schema apply|check clickhouse://USER@HOST:9000/DATABASE",
		Short: "Make the tables that OpenTelemetry Collectors fill, or check that they are there",
		Long: `schema apply makes the database and its tables in ClickHouse, or adds what a new version of slowpath
needs. It removes and changes nothing. schema check says what is missing. CLICKHOUSE_PASSWORD has the
password, and CLICKHOUSE_USER the user, where the address names none.

Exit codes: 0 done, 1 check: something is missing, 2 usage, 3 cannot connect.`,
		Example: `  CLICKHOUSE_PASSWORD=secret slowpath fleet schema apply clickhouses://ops@ch.example:9440/slowpath
  slowpath fleet schema check clickhouse+http://127.0.0.1:8123/slowpath`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 || args[0] != "apply" && args[0] != "check" || !manyhosts.IsClickHouse(args[1]) {
				return cli.Usagef("write: slowpath fleet schema apply clickhouse://USER@HOST:9000/DATABASE, or check")
			}
			if args[0] == "apply" {
				return noAnswer(manyhosts.ApplySchema(cmd.Context(), args[1], a.clickHouseLogin(), cluster,
					func(line string) { _ = a.Line(line) }))
			}
			source, err := a.openClickHouse(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			defer source.Close()
			if err := source.CheckSchema(cmd.Context()); err != nil {
				a.Code = cli.ExitFindings
				return a.Line(err.Error())
			}
			return a.Line("the schema is that of this slowpath")
		},
	}
	c.Flags().StringVar(&cluster, "on-cluster", "", "make replicated tables, and tables over all shards, on this "+
		"`cluster` of remote_servers; servers need the macros shard and replica")
	return c
}

// clickHouseLogin is who asks, as the environment says.
func (a *app) clickHouseLogin() manyhosts.Login {
	return manyhosts.Login{User: a.Env("CLICKHOUSE_USER"), Password: a.Env("CLICKHOUSE_PASSWORD")}
}

func (a *app) openClickHouse(ctx context.Context, source string) (*manyhosts.ClickHouse, error) {
	c, err := manyhosts.OpenClickHouse(ctx, source, a.clickHouseLogin())
	if err != nil && !errors.Is(err, manyhosts.ErrNoAnswer) {
		err = cli.Usage(err)
	}
	return c, noAnswer(err)
}

// noAnswer gives the error of a database or a Prometheus that cannot be asked its exit code.
func noAnswer(err error) error {
	if errors.Is(err, manyhosts.ErrNoAnswer) || errors.Is(err, manyhosts.ErrPrometheus) {
		return cli.WithCode(cli.ExitConnect, err)
	}
	return err
}
