package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// Values are what a word may be completed to, with a tab and what each means where that helps.
type Values func() []string

// begin gives the values that begin with a word.
func (v Values) begin(word string) (fitting []string) {
	for _, text := range v() {
		if strings.HasPrefix(text, word) {
			fitting = append(fitting, text)
		}
	}
	return fitting
}

// One completes the first argument alone.
func (v Values) One(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return v.begin(word), cobra.ShellCompDirectiveNoFileComp
}

// Many completes each argument, where nothing fits to the name of a file.
func (v Values) Many(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	return v.begin(word), cobra.ShellCompDirectiveDefault
}

// List completes the last of several values with commas between them. What they mean is left out: with it cobra's
// script for bash compares values in which commas are escaped, and none fits.
func (v Values) List(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	before, last := "", word
	if i := strings.LastIndexByte(word, ','); i >= 0 {
		before, last = word[:i+1], word[i+1:]
	}
	var out []string
	for _, text := range v.begin(last) {
		value, _, _ := strings.Cut(text, "\t")
		out = append(out, before+value)
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func Words(list ...string) Values { return func() []string { return list } }

func Names[N ~string](known func() []N) Values {
	return func() (list []string) {
		for _, n := range known() {
			list = append(list, string(n))
		}
		return list
	}
}

// Complete gives the commands below root what their arguments and flags are completed to.
func Complete(c *cobra.Command, arguments, flags map[string]cobra.CompletionFunc) {
	completeBelow(c, "", arguments, flags)
}

func completeBelow(c *cobra.Command, path string, arguments, flags map[string]cobra.CompletionFunc) {
	if f, is := arguments[path]; is {
		c.ValidArgsFunction = f
	}
	for name, f := range flags {
		if flag := c.Flags().Lookup(name); flag != nil && flag.Value.Type() != "int" {
			_ = c.RegisterFlagCompletionFunc(name, f) // the flag exists, and has no other
		}
	}
	for _, sub := range c.Commands() {
		completeBelow(sub, strings.TrimSpace(path+" "+sub.Name()), arguments, flags)
	}
}
