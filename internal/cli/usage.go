package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says what is wrong with a flag, in one line. It repeats no value of a flag that does not exist: -Asecret
// may hold a password.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var bad *pflag.InvalidValueError
	text := err.Error()
	switch {
	case errors.Is(err, pflag.ErrHelp): // -h where there is no host
		return err
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		text = "unknown flag " + dashed(name)
		if len(name) > 1 {
			text += meant(flagsLike(cmd, name))
		}
	case errors.As(err, &bare):
		text = dashed(bare.GetSpecifiedName()) + " needs a value"
		if bare.GetSpecifiedName() == "h" {
			text = "-h is the host, as in redis-cli, and needs a value"
		}
	case errors.As(err, &bad):
		text = fmt.Sprintf("--%s %q: give %s", bad.GetFlag().Name, bad.GetValue(), kindOf(bad.GetFlag()))
	}
	return Usagef("%s; see: %s --help", text, cmd.CommandPath())
}

// flagsLike are the flags of a command that are spelled about as a name.
func flagsLike(cmd *cobra.Command, name string) (near []string) {
	cmd.InheritedFlags() // adds those of all commands to its own
	for _, n := range similar(name, FlagNames(cmd.Flags())) {
		near = append(near, dashed(n))
	}
	if len(near) > 0 {
		return near
	}
	for _, word := range similar(name, slices.Sorted(maps.Keys(otherWords))) {
		if n := otherWords[word]; cmd.Flags().Lookup(n) != nil && !slices.Contains(near, dashed(n)) {
			near = append(near, dashed(n))
		}
	}
	return near
}

// otherWords are what flags are called elsewhere.
var otherWords = map[string]string{
	"threshold": "slow", "slower-than": "slow", "duration": "for", "seconds": "for", "time": "for", "password": "pass",
	"username": "user", "database": "db", "output": "record", "file": "record", "process": "pid",
	"clients": "connections", "conns": "connections", "ca": "cacert", "skip-verify": "insecure",
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// Alias lets flags be spelled as they were before, without a word in the help. Errors name the spelling of today.
func Alias(fl *pflag.FlagSet, today map[string]string) {
	fl.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(today[name], name))
	})
}

// kindOf says what a flag takes.
func kindOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "duration":
		return "a duration such as 500ms, 10s or 2m"
	case "int", "int64":
		return "a whole number"
	case "bool":
		return "true or false"
	}
	return "a " + f.Value.Type()
}

// Subcommand refuses arguments of a command that only has commands below it.
func Subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := meant(CommandsLike(cmd, args[0]))
	if hint == "" && cmd.Name() == "slowpath" && strings.ContainsAny(args[0], ":./") {
		// it is not repeated: a URL may hold a password
		return Usagef("a server or a recording needs a command in front: slowpath doctor HOST:PORT; see: slowpath " +
			"--help")
	}
	return Usagef("unknown command %q%s; see: %s --help", args[0], hint, cmd.CommandPath())
}

// CommandsLike are the commands below one that are spelled about as a word.
func CommandsLike(cmd *cobra.Command, word string) []string {
	cmd.SuggestionsMinimumDistance = distance(word)
	return cmd.SuggestionsFor(word)
}

// NoArguments is for commands that take flags only.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no arguments; see: %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}

// OneArgument is for commands that take exactly one, by its name in the usage.
func OneArgument(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usagef("%s takes one %s, not %d; see: %s --help", cmd.CommandPath(), name, len(args),
				cmd.CommandPath())
		}
		return nil
	}
}

// MostTime bounds durations: with one of them added, a time in nanoseconds since 1970 is still one.
const MostTime = 10 * 365 * 24 * time.Hour

// checkDurations refuses durations that are longer than anybody means.
func checkDurations(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if f.Value.Type() != "duration" || err != nil {
			return
		}
		if d, _ := flags.GetDuration(f.Name); d > MostTime { // it was parsed already
			err = Usagef("--%s %v: give at most %v (ten years)", f.Name, d, MostTime)
		}
	})
	return err
}

// Positive refuses a duration that is not above zero.
func Positive(name string, d time.Duration) error {
	if d <= 0 {
		return Usagef("--%s %v: must be above 0", name, d)
	}
	return nil
}

// NotNegative refuses a duration below zero.
func NotNegative(name string, d time.Duration) error {
	if d < 0 {
		return Usagef("--%s %v: must not be negative (0: until Ctrl-C)", name, d)
	}
	return nil
}
