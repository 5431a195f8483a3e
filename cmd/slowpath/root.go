package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/recording"
	"slowpath/internal/report"
	"slowpath/internal/resp"
	"slowpath/internal/session"
	"slowpath/internal/target"
)

// Exit codes (design.md, "Command line").
const (
	exitClean    = 0
	exitFindings = 1
	exitUsage    = 2
	exitConnect  = 3
	exitMissing  = 4
)

// app is what a command line may touch.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) string
	code           int
	target         target.Options
}

func (a *app) root() *cobra.Command {
	c := &cobra.Command{
		Use:   "slowpath",
		Short: "Why was a Redis or Valkey call slow?",
		Long: `slowpath tells why a Redis or Valkey call was slow: it watches a live server, accounts for the time of every
slow call, names the cause with proof, and gives the fix. It never changes the data or the settings of what it watches.`,
		Example: `  slowpath doctor 10.0.0.5:6379              watch for 30 s, then say why calls were slow
  slowpath doctor 10.0.0.5:6379 --for 2m --record night.slowpath
  slowpath doctor night.slowpath             the same verdict again, anywhere
  slowpath probe 10.0.0.5:6379               a steady probe, phase by phase, live`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.CompletionOptions.HiddenDefaultCmd = true
	c.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w\nSee: %s --help", err, cmd.CommandPath()))
	})
	// -h is the host, as in redis-cli; help has no short form.
	c.PersistentFlags().Bool("help", false, "help for this command")
	c.AddCommand(a.doctor(), a.probe(), a.record(), a.report(), a.lab())
	return c
}

// targetFlags adds the flags of redis-cli that say where and who.
func (a *app) targetFlags(c *cobra.Command) {
	f := c.Flags()
	o := &a.target
	f.StringVarP(&o.Host, "host", "h", "", "server `host`name (default 127.0.0.1)")
	f.IntVarP(&o.Port, "port", "p", 0, "server `port` (default 6379)")
	f.StringVarP(&o.Socket, "socket", "s", "", "server `socket` (overrides host and port)")
	f.StringVarP(&o.Password, "pass", "a", "", "`password`; also from REDISCLI_AUTH, which other users cannot see in ps")
	f.StringVarP(&o.URI, "uri", "u", "", "server `URI`: redis://user:password@host:port/db, rediss://…, unix:///path")
	f.IntVarP(&o.DB, "db", "n", 0, "database `number`")
	f.StringVar(&o.User, "user", "", "`user` name for AUTH")
	f.BoolVar(&o.AskPass, "askpass", false, "ask for the password on the terminal")
	f.BoolVar(&o.TLS, "tls", false, "connect with TLS")
	f.StringVar(&o.SNI, "sni", "", "server `name` for TLS")
	f.StringVar(&o.CACert, "cacert", "", "`file` with the CA certificates to trust")
	f.StringVar(&o.Cert, "cert", "", "client certificate `file`")
	f.StringVar(&o.Key, "key", "", "client key `file`")
	f.BoolVar(&o.Insecure, "insecure", false, "accept any certificate")
	f.BoolVarP(&o.Cluster, "cluster", "c", false, "a seed of a cluster (its other nodes are found by themselves)")
	f.BoolVarP(&o.RESP2, "resp2", "2", false, "speak RESP2")
	f.BoolVarP(&o.RESP3, "resp3", "3", false, "speak RESP3")
	f.SortFlags = false
}

// targets are the servers that the command line names.
func (a *app) targets(args []string) ([]target.Target, error) {
	ts, err := a.target.Targets(args, a.env)
	if err != nil {
		return nil, usage(err)
	}
	return ts, nil
}

// usageError marks an error of the command line or of a file that it names.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func usage(err error) error { return usageError{err} }

// exitCode finds the exit code of an error.
func exitCode(err error) int {
	var u usageError
	var te *target.Error
	var se *session.Error
	switch {
	case errors.As(err, &u), errors.Is(err, recording.ErrNotRecording), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrExist):
		return exitUsage
	case errors.As(err, &te), errors.As(err, &se), errors.Is(err, resp.ErrNotRedis):
		return exitConnect
	case strings.HasPrefix(err.Error(), "unknown command"), strings.HasPrefix(err.Error(), "unknown flag"):
		return exitUsage
	case errors.Is(err, errMissing):
		return exitMissing
	default:
		return exitUsage
	}
}

// errMissing marks a privilege or kernel feature that is missing.
var errMissing = errors.New("missing")

// explain prints an error as one line that ends in the fix where one is known.
func (a *app) explain(err error) {
	fmt.Fprintf(a.stderr, "slowpath: %s\n", strings.TrimSpace(err.Error()))
}

// style is how text goes to stdout.
func (a *app) style() report.Style {
	if f, ok := a.stdout.(*os.File); ok {
		return report.StyleOf(f, a.env)
	}
	return report.Style{Width: 80}
}

// onTerminal reports whether stderr is a terminal, so that live lines make sense.
func (a *app) onTerminal() bool {
	f, ok := a.stderr.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// progress shows what a long command is doing: a live line on a terminal, nothing elsewhere.
func (a *app) progress(format string, args ...any) {
	if a.onTerminal() {
		fmt.Fprintf(a.stderr, "\r\x1b[K"+format, args...)
	}
}

func (a *app) progressDone() {
	if a.onTerminal() {
		fmt.Fprint(a.stderr, "\r\x1b[K")
	}
}

// positive refuses durations below zero.
func positive(name string, d time.Duration) error {
	if d < 0 {
		return usage(fmt.Errorf("--%s %v: must not be negative", name, d))
	}
	return nil
}
