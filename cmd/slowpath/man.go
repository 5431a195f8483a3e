package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/outfile"
)

// man writes the helps as pages for man(1). It is for packages, and listed nowhere.
func (a *app) man() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Write a manual page for each command into a directory",
		Example: "  slowpath man bin/man",
		Hidden:  true,
		Args:    oneArgument("DIRECTORY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := outfile.Directory(args[0]); err != nil {
				return usage(err)
			}
			return manPages(cmd.Root(), args[0])
		},
	}
}

// manPages writes the page of a command, and those of all below it.
func manPages(cmd *cobra.Command, dir string) error {
	file, err := outfile.Overwrite(filepath.Join(dir, manName(cmd)+".1"))
	if err != nil {
		return usage(err)
	}
	_, err = file.Write(manPage(cmd))
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("writing a manual page: %w", err)
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := manPages(sub, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// manName is that of the page of a command: slowpath-lab-run.
func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is the help of a command in the language of man(7).
func manPage(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	name := manName(cmd)
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"slowpath %s\" \"slowpath\"\n", roff(strings.ToUpper(name)), roff(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", roff(name), roff(cmd.Short))
	for line := range strings.SplitSeq(usageLine(cmd), "\n") {
		fmt.Fprintf(&b, ".B %s\n.br\n", roff(strings.TrimSpace(line)))
	}
	fmt.Fprintln(&b, ".SH DESCRIPTION")
	for paragraph := range strings.SplitSeq(description(cmd), "\n\n") {
		fmt.Fprintf(&b, ".PP\n%s\n", roff(paragraph))
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	var see []string
	if cmd.HasParent() {
		see = append(see, manName(cmd.Parent()))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(&b, ".SH COMMANDS")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(sub.Name()), roff(sub.Short))
				see = append(see, manName(sub))
			}
		}
	}
	for _, g := range flagGroups(cmd) {
		if g.flags.HasAvailableFlags() {
			fmt.Fprintf(&b, ".SH %s\n", roff(strings.ToUpper(g.title)))
			g.flags.VisitAll(func(f *pflag.Flag) { manFlag(&b, f) })
		}
	}
	if len(see) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s(1)\n", roff(strings.Join(see, "(1), ")))
	}
	return b.Bytes()
}

func manFlag(b *bytes.Buffer, f *pflag.Flag) {
	kind, text := flagText(f)
	fmt.Fprint(b, ".TP\n")
	if f.Shorthand != "" {
		fmt.Fprintf(b, "\\fB%s\\fR, ", roff("-"+f.Shorthand))
	}
	fmt.Fprintf(b, "\\fB%s\\fR", roff("--"+f.Name))
	if kind != "" {
		fmt.Fprintf(b, " \\fI%s\\fR", roff(kind))
	}
	fmt.Fprintf(b, "\n%s\n", roff(text))
}

// roff makes a text one that groff prints as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`,
		`"`, `\(dq`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") {
			lines[i] = `\&` + l // else a request
		}
	}
	return strings.Join(lines, "\n")
}
