// Command sensitivity finds which verdicts hang on which bound of the diagnosis: it judges recordings with each bound
// 30 % lower and 30 % higher, and lists what changes. It builds a copy of the diagnosis in which bounds can be scaled;
// the sources stay as they are.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/bounds"
)

func main() {
	pattern := flag.String("bounds", "", "only bounds whose name (package.name) matches this regular expression")
	again := flag.Bool("again", false, "also bounds whose result is there already")
	recordings := flag.String("recordings", "", "a directory of recordings (*.slowpath) instead of the corpus; the "+
		"result goes to standard output")
	flag.Parse()
	if err := run(*pattern, *again, *recordings); err != nil {
		fmt.Fprintln(os.Stderr, "sensitivity:", err)
		os.Exit(1)
	}
}

func run(pattern string, again bool, recordings string) error {
	wants, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	all, problems, err := bounds.Read(root)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return fmt.Errorf("a bound has no reason: %s", problems[0])
	}
	file := filepath.Join(root, bounds.SensitivityFile)
	known := bounds.Sensitivities{}
	if recordings == "" {
		if known, err = bounds.ReadSensitivities(file); err != nil {
			return err
		}
		known.Forget(all)
	}
	temporary, err := os.MkdirTemp("", "slowpath-sensitivity")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	overlay, scaled, err := rewrite(root, temporary, all)
	if err != nil {
		return err
	}
	var wanted []int
	for i, b := range all {
		_, done := known[b.Name]
		switch {
		case !wants.MatchString(b.Name) || done && !again:
		case !scaled[i]:
			fmt.Fprintf(os.Stderr, "%s is used in constants and package variables only, or where no recording is "+
				"judged: left out\n", b.Name)
			known[b.Name] = bounds.Sensitivity{Value: b.Value, LeftOut: true}
		default:
			wanted = append(wanted, i)
		}
	}
	return judge(root, filepath.Join(temporary, "judge"), overlay, recordings, all, wanted, func() error {
		if recordings == "" {
			return known.Write(file)
		}
		return known.Encode(os.Stdout)
	}, known)
}

// moduleRoot is the folder of go.mod.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	return strings.TrimSpace(string(out)), err
}

// judge builds the judge and runs it. Results are saved as they come.
func judge(root, program, overlay, recordings string, all []bounds.Bound, wanted []int, save func() error,
	known bounds.Sensitivities,
) error {
	if len(wanted) == 0 {
		return save()
	}
	build := exec.Command("go", "build", "-overlay", overlay, "-o", program, rejudgePath)
	build.Dir, build.Stdout, build.Stderr = root, os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the judge: %w", err)
	}
	numbers := make([]string, len(wanted))
	for i, n := range wanted {
		numbers[i] = strconv.Itoa(n)
	}
	run := exec.Command(program, "-count", strconv.Itoa(len(all)), "-wanted", strings.Join(numbers, ","), "-recordings",
		recordings)
	run.Stderr = os.Stderr
	run.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=400")
	out, err := run.StdoutPipe()
	if err != nil {
		return err
	}
	if err := run.Start(); err != nil {
		return err
	}
	return errors.Join(collect(out, all, known, save), run.Wait())
}

func collect(out io.Reader, all []bounds.Bound, known bounds.Sensitivities, save func() error) error {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var r struct {
			Bound int
			bounds.Sensitivity
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		r.Value = all[r.Bound].Value
		known[all[r.Bound].Name] = r.Sensitivity
		if err := save(); err != nil {
			return err
		}
	}
	return lines.Err()
}
