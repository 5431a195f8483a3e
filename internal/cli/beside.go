package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// besideAnnotation marks a command that is another program.
const besideAnnotation = "beside"

// Beside is the path of a program that is beside this one. No other place is searched: what is found there may be
// another's, and of another version.
func Beside(program string) (string, error) {
	own, err := os.Executable()
	if err == nil {
		own, err = filepath.EvalSymlinks(own)
	}
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(own), program)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "", fmt.Errorf("%s is %w: it is not beside %s; install the package %[1]s, or in the source: "+
			"make build", program, ErrMissing, own)
	}
	return path, nil
}

// CommandBeside is a command that is another program, beside this one: called as the program with these first
// arguments, it gets all that follows, and takes the place of this process.
func CommandBeside(use, short, program string, first ...string) *cobra.Command {
	return &cobra.Command{
		Use:                use,
		Short:              short,
		Long:               fmt.Sprintf("%s is in the program %s, which is beside this one.", use, program),
		DisableFlagParsing: true,
		Annotations:        map[string]string{besideAnnotation: strings.Join(append([]string{program}, first...), " ")},
		RunE: func(_ *cobra.Command, args []string) error {
			return become(program, slices.Concat(first, args))
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			path, err := Beside(program)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			asked := exec.CommandContext(cmd.Context(), path, slices.Concat([]string{cobra.ShellCompRequestCmd}, first,
				args, []string{word})...)
			asked.Stderr = io.Discard // a word about the directive
			out, err := asked.Output()
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return completed(out)
		},
	}
}

// completed reads what a program completes a word to: a line each, and then the directive after a colon.
func completed(out []byte) ([]string, cobra.ShellCompDirective) {
	text, directive, found := strings.Cut("\n"+string(bytes.TrimSpace(out)), "\n:")
	n, err := strconv.Atoi(directive)
	if !found || err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return strings.Split(text, "\n")[1:], cobra.ShellCompDirective(n)
}

// become executes a program beside this one in place of it.
func become(program string, args []string) error {
	path, err := Beside(program)
	if err != nil {
		return err
	}
	return syscall.Exec(path, append([]string{path}, args...), os.Environ())
}

// helpBeside is the help of a command of another program.
func helpBeside(cmd *cobra.Command, args []string) error {
	words := strings.Fields(cmd.Annotations[besideAnnotation])
	return become(words[0], slices.Concat([]string{"help"}, words[1:], args))
}

// IsBeside reports whether a command is another program.
func IsBeside(cmd *cobra.Command) bool { return cmd.Annotations[besideAnnotation] != "" }
