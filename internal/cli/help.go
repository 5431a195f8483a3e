package cli

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/report/layout"
)

// MaxHelpWidth is the longest line of a help, however wide the terminal.
const MaxHelpWidth = 100

// help prints the help of a command for the width of the terminal.
func (p *Program) help(cmd *cobra.Command, _ []string) {
	if _, err := p.Stdout.Write(HelpOf(cmd, min(p.Style().Width, MaxHelpWidth))); err != nil && !ReaderGone(err) {
		p.Explain(err)
	}
}

// HelpOf is what a command does, how to call it, examples, its flags, and then those that say where and who.
func HelpOf(cmd *cobra.Command, width int) []byte {
	var b bytes.Buffer
	for paragraph := range strings.SplitSeq(description(cmd), "\n\n") {
		fmt.Fprintln(&b, layout.Fill(paragraph, width))
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "Usage:\n  %s\n", usageLine(cmd))
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	commands(&b, cmd, width)
	for _, g := range FlagGroups(cmd) {
		if g.Flags.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s:\n%s", g.Title, usages(g.Flags, width))
		}
	}
	return b.Bytes()
}

// TwoColumns is the least width of a terminal in which flags and their texts stand side by side.
const TwoColumns = 70

// usages lists flags; on a narrow terminal each has its text below it.
func usages(flags *pflag.FlagSet, width int) string {
	if width >= TwoColumns {
		return flags.FlagUsagesWrapped(width)
	}
	var b strings.Builder
	const indent = "      "
	flags.VisitAll(func(f *pflag.Flag) {
		kind, text := flagText(f)
		short := "    "
		if f.Shorthand != "" {
			short = "-" + f.Shorthand + ", "
		}
		fmt.Fprintf(&b, "  %s--%s\n", short, strings.TrimSpace(f.Name+" "+kind))
		fmt.Fprintln(&b, indent+strings.ReplaceAll(layout.Fill(text, width-len(indent)), "\n", "\n"+indent))
	})
	return b.String()
}

// zeroValues are defaults that say nothing.
var zeroValues = []string{"", "0", "0s", "false", "[]"}

// flagText is what a flag takes, and what it does, with its default.
func flagText(f *pflag.Flag) (kind, text string) {
	kind, text = pflag.UnquoteUsage(f)
	if !slices.Contains(zeroValues, f.DefValue) {
		text += " (default " + f.DefValue + ")"
	}
	return kind, text
}

// description says what a command does, in paragraphs.
func description(cmd *cobra.Command) string {
	if cmd.Long == "" {
		return cmd.Short + "."
	}
	return cmd.Long
}

func usageLine(cmd *cobra.Command) string {
	line := strings.Replace(cmd.UseLine(), " [flags]", "", 1)
	if !cmd.HasAvailableSubCommands() {
		return line
	}
	commands := cmd.CommandPath() + " COMMAND"
	if strings.Contains(cmd.Use, " ") { // it does something without one, too
		return line + "\n  " + commands
	}
	return commands
}

func commands(w io.Writer, cmd *cobra.Command, width int) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	fmt.Fprintln(w, "\nCommands:")
	names := 0
	for _, sub := range cmd.Commands() {
		names = max(names, len(sub.Name()))
	}
	indent := strings.Repeat(" ", names+3)
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			text := strings.ReplaceAll(layout.Fill(sub.Short, width-len(indent)), "\n", "\n"+indent)
			fmt.Fprintf(w, "  %-*s %s\n", names, sub.Name(), text)
		}
	}
	fmt.Fprintf(w, "\nMore on each: %s COMMAND --help\n", cmd.CommandPath())
}

// flagGroup is flags with a title of their own in the help.
type flagGroup struct {
	Title string
	Flags *pflag.FlagSet
}

// whereAnnotation marks flags that say where and who.
const whereAnnotation = "where"

// groupAnnotation names the group of a flag.
const groupAnnotation = "group"

// Group marks the flags that define adds as one group of the help.
func Group(fl *pflag.FlagSet, title string, define func()) {
	before := map[string]bool{}
	fl.VisitAll(func(f *pflag.Flag) { before[f.Name] = true })
	define()
	fl.VisitAll(func(f *pflag.Flag) {
		if !before[f.Name] {
			_ = fl.SetAnnotation(f.Name, groupAnnotation, []string{title}) // the flag exists
		}
	})
}

// FlagGroups parts a command's own flags, in the groups that it made of them, from those that say where and who.
func FlagGroups(cmd *cobra.Command) []flagGroup {
	var groups []flagGroup
	add := func(title string, f *pflag.Flag) {
		for _, g := range groups {
			if g.Title == title {
				g.Flags.AddFlag(f)
				return
			}
		}
		g := flagGroup{title, pflag.NewFlagSet(title, pflag.ContinueOnError)}
		g.Flags.SortFlags = false
		g.Flags.AddFlag(f)
		groups = append(groups, g)
	}
	where := flagGroup{"Where and who, as in redis-cli", pflag.NewFlagSet("where", pflag.ContinueOnError)}
	where.Flags.SortFlags = false
	sort := func(f *pflag.Flag) {
		if _, ok := f.Annotations[whereAnnotation]; ok {
			where.Flags.AddFlag(f)
			return
		}
		title := "Flags"
		if g := f.Annotations[groupAnnotation]; len(g) == 1 {
			title = g[0]
		}
		add(title, f)
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
			sort(f)
		}
	})
	if f := cmd.Flag("help"); f != nil {
		sort(f)
	}
	return append(groups, where)
}

func FlagNames(f *pflag.FlagSet) (names []string) {
	f.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// OwnFlags are those that were defined so far.
func OwnFlags(f *pflag.FlagSet) map[string]bool {
	own := map[string]bool{}
	for _, name := range FlagNames(f) {
		own[name] = true
	}
	return own
}

// Mark marks the flags that were added after own, for the help.
func Mark(f *pflag.FlagSet, own map[string]bool) {
	f.SortFlags = false
	for _, name := range FlagNames(f) {
		if !own[name] {
			_ = f.SetAnnotation(name, whereAnnotation, nil) // the flag exists
		}
	}
}

// helpCommand is "help [COMMAND]", which refuses what is no command.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "The help of a command",
		Example: "  slowpath help doctor",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			var below Values = func() (list []string) {
				of, rest, err := cmd.Root().Find(args)
				if err != nil || len(rest) > 0 {
					return nil
				}
				for _, c := range of.Commands() {
					if c.IsAvailableCommand() {
						list = append(list, c.Name()+"\t"+c.Short)
					}
				}
				return list
			}
			return below.begin(word), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if found != nil && IsBeside(found) {
				return helpBeside(found, rest)
			}
			if err != nil || found == nil || len(rest) > 0 {
				hint := ""
				if found != nil && len(rest) > 0 {
					hint = meant(CommandsLike(found, rest[0]))
				}
				return Usagef("no command %q%s; see: slowpath --help", strings.Join(args, " "), hint)
			}
			return found.Help()
		},
	}
}
