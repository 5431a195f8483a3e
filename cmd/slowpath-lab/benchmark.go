//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/lab/benchmark"
	"slowpath/internal/lab/random"
	"slowpath/internal/lab/servers"
	"slowpath/internal/report/layout"
)

// benchmarkCommand makes and grades a benchmark for tools that say why calls are slow.
func (a *app) benchmarkCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "benchmark COMMAND",
		Short: "Incidents with their measured truth, to grade any tool on",
		Long: `benchmark makes incidents of drawn servers, callers and faults, with what an operator would have had at
hand: what native commands print before, during and after, a recording, and a packet capture where wanted. What each
fault cost the callers by their own clocks is kept apart from that. Answers of any tool are graded against it.

docs/benchmark.md has the formats, and what the tools that come along say.`,
		Example: `  slowpath lab benchmark make incidents --number 20
  slowpath lab benchmark answer incidents > answers.jsonl
  slowpath lab benchmark grade incidents answers.jsonl`,
	}
	c.AddCommand(a.benchmarkMake(), a.benchmarkAnswer(), a.benchmarkGrade())
	return c
}

func (a *app) benchmarkMake() *cobra.Command {
	var (
		m      benchmark.Maker
		n      int
		seed   uint64
		server string
	)
	c := &cobra.Command{
		Use:   "make DIRECTORY",
		Short: "Make incidents into a directory; those that it has are not made again",
		Long: fmt.Sprintf(`make draws servers, callers and faults, measures what each
fault costs the callers, and records them with all faults on. An incident takes about %.0f s. Ctrl-C ends it; the same
command goes on.`, benchmark.Seconds),
		Example: `  slowpath lab benchmark make incidents --number 20
  slowpath lab benchmark make incidents --number 5 --seed 100 --capture`,
		Args: cli.OneArgument("DIRECTORY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if n < 1 {
				return cli.Usagef("--number %d: give at least 1", n)
			}
			if _, err := a.openLab(cmd.Context(), defaultServer, a.Stderr); err != nil {
				return err
			}
			if server != "" {
				if _, err := servers.Lookup(servers.Name(server)); err != nil {
					return cli.Usage(err)
				}
			}
			exe, err := slowpath()
			if err != nil {
				return err
			}
			m.Dir, m.Exe, m.Server, m.Log = args[0], exe, servers.Name(server), io.Discard
			return a.makeIncidents(a.steps(cmd.Context(), "the incident is undone"), m, seed, n)
		},
	}
	fl := c.Flags()
	fl.IntVarP(&n, "number", "n", 20, "how many incidents the directory shall have")
	fl.Uint64Var(&seed, "seed", 1, "`seed` of the first; the next one's is one more")
	fl.StringVar(&server, "server", "", "draw this server `version` only (default: any)")
	fl.BoolVar(&m.Capture, "capture", false, "capture packets, too")
	return c
}

func (a *app) makeIncidents(ctx context.Context, m benchmark.Maker, seed uint64, n int) error {
	for i := range uint64(n) {
		run, err := m.Make(ctx, seed+i)
		if err != nil {
			return err
		}
		a.ProgressDone()
		if ctx.Err() != nil {
			a.Code = cli.ExitInterrupted
			a.Say(fmt.Sprintf("stopped after %d of %d incidents; the same command goes on", i, n))
			return nil
		}
		a.made(made{run})
	}
	return nil
}

// made says what an incident is, or why it could not be made.
type made struct{ random.Run }

// Line prints it.
func (m made) Line(w io.Writer) {
	switch {
	case m.Skipped != "":
		fmt.Fprintf(w, "incident %d: this machine cannot make it: %s\n", m.Seed, m.Skipped)
	case m.Error != "":
		fmt.Fprintf(w, "incident %d: %s\n", m.Seed, m.Error)
	default:
		fmt.Fprintf(w, "incident %d: %s\n", m.Seed, m.Truth[0].Cause)
	}
}

func (a *app) benchmarkAnswer() *cobra.Command {
	c := &cobra.Command{
		Use:     "answer DIRECTORY",
		Short:   "Print what slowpath, LATENCY DOCTOR and SLOWLOG say, a JSON document per line",
		Example: `  slowpath lab benchmark answer incidents > answers.jsonl`,
		Args:    cli.OneArgument("DIRECTORY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			set := benchmark.Set{Dir: args[0]}
			incidents, err := set.Incidents()
			if err != nil {
				return cli.Usage(err)
			}
			for i, in := range incidents {
				a.Progress("incident %d of %d", i+1, len(incidents))
				for _, tool := range benchmark.Tools(version) {
					answer, err := tool.Answer(set, in)
					if err != nil {
						return err
					}
					answer.Schema, answer.Tool, answer.Incident = benchmark.AnswerSchema, tool.Name, in.ID
					if err := benchmark.WriteAnswers(a.Stdout, []benchmark.Answer{answer}); err != nil {
						return err
					}
				}
			}
			a.ProgressDone()
			return nil
		},
	}
	return c
}

func (a *app) benchmarkGrade() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "grade DIRECTORY FILE...",
		Short: "Compare answers of tools with the truth",
		Example: `  slowpath lab benchmark grade incidents answers.jsonl
  slowpath lab benchmark grade incidents answers.jsonl mine.jsonl --json`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			var answers []benchmark.Answer
			for _, path := range args[1:] {
				f, err := os.Open(path)
				if err != nil {
					return cli.Usage(err)
				}
				some, err := benchmark.ReadAnswers(f)
				f.Close()
				if err != nil {
					return cli.Usagef("%s: %w", path, err)
				}
				answers = append(answers, some...)
			}
			r, err := benchmark.Set{Dir: args[0]}.Grade(answers)
			if err != nil {
				return cli.Usage(err)
			}
			if asJSON {
				return layout.JSON(a.Stdout, "the grades", r)
			}
			r.Table(a.Stdout)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print "+benchmark.GradeSchema)
	return c
}
