package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/assistant"
	"slowpath/internal/cli"
)

// mcpFlags are those of mcp.
type mcpFlags struct {
	agent, tokenFile, ca string
	fleet                []string
}

// ofMCP are the flags of mcp that the commands which it starts are not given. A password is in their environment.
var ofMCP = []string{"agent", "token-file", "agent-ca", "fleet", "pass"}

func (a *app) mcp() *cobra.Command {
	var f mcpFlags
	c := &cobra.Command{
		Use:   "mcp [TARGET...]",
		Short: "Answer assistants over the Model Context Protocol (stdio), read-only",
		Long: `mcp is a server of the Model Context Protocol on stdin and stdout. An assistant that starts it can ask
why calls are slow, and gets causes with evidence, culprits and fixes.

Its tools only read. They watch the TARGETs and nothing else, ask the agent of --agent, and ask many hosts of --fleet.
Answers are bounded; what servers and clients named themselves is marked as untrusted text. Commands in a fix are for
people to run.

It ends with stdin. Exit codes: 0 ended, 2 usage.`,
		Example: `  slowpath mcp 10.0.0.5:6379
  slowpath mcp --agent http://127.0.0.1:7380
  slowpath mcp --agent https://redis-1.example:7380 --token-file token
  slowpath mcp --fleet clickhouses://ch.example:9440/slowpath`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := a.assistantOptions(cmd, &f, args)
			if err != nil {
				return err
			}
			err = assistant.New(o).Run(cmd.Context(), &mcp.StdioTransport{})
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.agent, "agent", "", "ask the agent at this `address` for its incidents: http://127.0.0.1:7380")
	fl.StringVar(&f.tokenFile, "token-file", "", "`file` with the token of the agent")
	fl.StringVar(&f.ca, "agent-ca", "", "`file` with the CA certificates of the agent")
	fl.StringSliceVar(&f.fleet, "fleet", nil, "ask many hosts by this `source` of slowpath fleet")
	a.targetFlags(c)
	return c
}

// assistantOptions are what the command line lets assistants ask.
func (a *app) assistantOptions(cmd *cobra.Command, f *mcpFlags, args []string) (o assistant.Options, err error) {
	o.Version = a.Version
	if f.agent == "" && (f.tokenFile != "" || f.ca != "") {
		return o, cli.Usagef("--token-file and --agent-ca are for --agent: add it, or leave them out")
	}
	if f.agent != "" {
		var token, ca []byte
		if f.tokenFile != "" {
			if token, err = cli.ReadNamed(f.tokenFile, mostKeyBytes); err != nil {
				return o, cli.Usagef("--token-file: %w", err)
			}
		}
		if f.ca != "" {
			if ca, err = cli.ReadNamed(f.ca, mostKeyBytes); err != nil {
				return o, cli.Usagef("--agent-ca: %w", err)
			}
		}
		agent, err := assistant.NewAgent(f.agent, strings.TrimSpace(string(token)), ca)
		if err != nil {
			return o, cli.Usagef("--agent %w", err)
		}
		o.Agent = agent.Get
	}
	if len(f.fleet) > 0 {
		o.Fleet = func(ctx context.Context, question string, flags ...string) ([]byte, error) {
			return assistant.Command(ctx, nil, slices.Concat([]string{"fleet", "--json"}, flags, []string{"--"},
				f.fleet, []string{question})...)
		}
	}
	for _, name := range []string{"host", "port", "socket", "uri", "askpass"} {
		if cmd.Flags().Changed(name) {
			return o, cli.Usagef("--%s: mcp takes its servers as arguments, HOST:PORT or a URL, and the password from "+
				"REDISCLI_AUTH", name)
		}
	}
	if len(args) == 0 && (f.agent != "" || len(f.fleet) > 0) {
		return o, nil
	}
	targets, err := a.Targets(cmd.Context(), args)
	if err != nil {
		return o, err
	}
	for _, t := range targets {
		o.Targets = append(o.Targets, t.Addr())
	}
	if len(args) == 0 {
		args = o.Targets
	}
	o.Watch = func(ctx context.Context, target int, command string, rest ...string) ([]byte, error) {
		named, flags, env := args, given(cmd.Flags()), []string{"REDISCLI_AUTH=" + a.Where.Password}
		if command == "trace" { // it asks no server
			named, flags = o.Targets, nil
		}
		if target != assistant.All {
			named = named[target : target+1]
		}
		if a.Where.Password == "" {
			env = nil
		}
		return assistant.Command(ctx, env, slices.Concat([]string{command}, rest, flags, []string{"--"}, named)...)
	}
	return o, nil
}

// mostKeyBytes bounds a file with a token or certificates.
const mostKeyBytes = 1 << 20

// given are the flags that say how to reach servers, as they were given.
func given(flags *pflag.FlagSet) (out []string) {
	flags.Visit(func(f *pflag.Flag) {
		if !slices.Contains(ofMCP, f.Name) {
			out = append(out, "--"+f.Name+"="+f.Value.String())
		}
	})
	return out
}
