package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/outfile"
)

// ManCommand writes the helps as pages for man(1). It is for packages, and listed nowhere.
func (p *Program) ManCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Write a manual page for each command into a directory",
		Example: "  slowpath man bin/man",
		Hidden:  true,
		Args:    OneArgument("DIRECTORY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := outfile.Directory(args[0]); err != nil {
				return Usage(err)
			}
			return ManPages(cmd.Root(), args[0])
		},
	}
}

// ManPages writes the page of a command, and those of all below it.
func ManPages(cmd *cobra.Command, dir string) error {
	file, err := outfile.Overwrite(filepath.Join(dir, ManName(cmd)+".1"))
	if err != nil {
		return Usage(err)
	}
	_, err = file.Write(manPage(cmd))
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("writing a manual page: %w", err)
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && !IsBeside(sub) {
			if err := ManPages(sub, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// ManName is that of the page of a command: slowpath-lab-run.
func ManName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is the help of a command in the language of man(7).
func manPage(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	name := ManName(cmd)
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"slowpath %s\" \"slowpath\"\n", Roff(strings.ToUpper(name)),
		Roff(cmd.Root().Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", Roff(name), Roff(cmd.Short))
	for line := range strings.SplitSeq(usageLine(cmd), "\n") {
		fmt.Fprintf(&b, ".B %s\n.br\n", Roff(strings.TrimSpace(line)))
	}
	fmt.Fprintln(&b, ".SH DESCRIPTION")
	for paragraph := range strings.SplitSeq(description(cmd), "\n\n") {
		fmt.Fprintf(&b, ".PP\n%s\n", Roff(paragraph))
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", Roff(cmd.Example))
	}
	var see []string
	if cmd.HasParent() {
		see = append(see, ManName(cmd.Parent()))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(&b, ".SH COMMANDS")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", Roff(sub.Name()), Roff(sub.Short))
				see = append(see, ManName(sub))
			}
		}
	}
	for _, g := range FlagGroups(cmd) {
		if g.Flags.HasAvailableFlags() {
			fmt.Fprintf(&b, ".SH %s\n", Roff(strings.ToUpper(g.Title)))
			g.Flags.VisitAll(func(f *pflag.Flag) { manFlag(&b, f) })
		}
	}
	if len(see) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s(1)\n", Roff(strings.Join(see, "(1), ")))
	}
	return b.Bytes()
}

func manFlag(b *bytes.Buffer, f *pflag.Flag) {
	kind, text := flagText(f)
	fmt.Fprint(b, ".TP\n")
	if f.Shorthand != "" {
		fmt.Fprintf(b, "\\fB%s\\fR, ", Roff("-"+f.Shorthand))
	}
	fmt.Fprintf(b, "\\fB%s\\fR", Roff("--"+f.Name))
	if kind != "" {
		fmt.Fprintf(b, " \\fI%s\\fR", Roff(kind))
	}
	fmt.Fprintf(b, "\n%s\n", Roff(text))
}

// Roff makes a text one that groff prints as it is.
func Roff(text string) string {
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
