package house

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// workflow is what these tests read of a file of .github/workflows.
type workflow struct {
	On   any
	Jobs map[string]struct {
		Steps []struct{ Uses, Run string }
	}
}

// TestWorkflows: workflows call targets of the Makefile that exist and nothing else, and actions by their version.
func TestWorkflows(t *testing.T) {
	targets := makeTargets(read(t, "Makefile"))
	paths, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(paths) < 3 {
		t.Fatalf("%v: workflows %v", err, paths)
	}
	for _, path := range paths {
		var w workflow
		if err := yaml.Unmarshal([]byte(read(t, path)), &w); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		for _, p := range workflowProblems(w, targets) {
			t.Errorf("%s: %s", path, p)
		}
	}
}

func makeTargets(makefile string) (targets []string) {
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, m[1])
	}
	return targets
}

var action = regexp.MustCompile(`^actions/[a-z-]+@(v\d+|[0-9a-f]{40})$`)

func workflowProblems(w workflow, targets []string) (problems []string) {
	if w.On == nil || len(w.Jobs) == 0 {
		problems = append(problems, "it never runs, or has no jobs")
	}
	for job, j := range w.Jobs {
		for _, step := range j.Steps {
			switch words := strings.Fields(step.Run); {
			case step.Uses != "" && !action.MatchString(step.Uses):
				problems = append(problems, job+" uses "+step.Uses+": not one of the host's actions, or no version")
			case step.Uses != "":
			case len(words) != 2 || words[0] != "make":
				problems = append(problems, job+" runs "+step.Run+", not a target of the Makefile")
			case !slices.Contains(targets, words[1]):
				problems = append(problems, job+" makes "+words[1]+", which the Makefile has not")
			}
		}
	}
	return problems
}

// TestWorkflowProblems: what is wrong with a workflow.
func TestWorkflowProblems(t *testing.T) {
	const steps = "on: push\njobs: {a: {steps: [{%}]}}"
	for text, want := range map[string]string{
		strings.Replace(steps, "%", "run: make gate", 1):              "",
		strings.Replace(steps, "%", "uses: actions/checkout@v6", 1):   "",
		strings.Replace(steps, "%", "run: make gone", 1):              "makes gone",
		strings.Replace(steps, "%", "run: make gate && ls", 1):        "not a target",
		strings.Replace(steps, "%", "run: go test ./...", 1):          "not a target",
		strings.Replace(steps, "%", "uses: actions/checkout@main", 1): "no version",
		strings.Replace(steps, "%", "uses: somebody/action@v1", 1):    "not one of the host's",
		strings.Replace(steps, "on: push\n", "", 1):                   "never runs",
		"on: push\njobs: {}": "no jobs",
		strings.Replace(steps, "%", "run: make test-long\n, name: all of it", 1): "",
	} {
		var w workflow
		if err := yaml.Unmarshal([]byte(strings.Replace(text, "%", "run: make gate", 1)), &w); err != nil {
			t.Fatal(err)
		}
		targets := makeTargets("gate: lint ## x\ntest-long:\n")
		got := strings.Join(workflowProblems(w, targets), "; ")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestDependabot: each module of the repository is looked after.
func TestDependabot(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, ".github/dependabot.yml")), &config); err != nil {
		t.Fatal(err)
	}
	var modules []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (path == ".git" || path == "bin" || path == "dist" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if err == nil && d.Name() == "go.mod" {
			modules = append(modules, filepath.Join("/", filepath.Dir(path)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, u := range config.Updates {
		if u.Ecosystem == "gomod" {
			listed = append(listed, u.Directories...)
		}
	}
	slices.Sort(listed)
	slices.Sort(modules)
	if !slices.Equal(listed, modules) {
		t.Errorf("modules %v, dependabot has %v", modules, listed)
	}
}

// TestForms: forms, and the configuration of tools, can be read; each form asks for the version and a recording.
func TestForms(t *testing.T) {
	paths, err := filepath.Glob(".github/ISSUE_TEMPLATE/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, ".golangci.yml") {
		var any map[string]any
		if err := yaml.Unmarshal([]byte(read(t, path)), &any); err != nil || len(any) == 0 {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"bug.yml", "wrong-verdict.yml"} {
		text := read(t, filepath.Join(".github/ISSUE_TEMPLATE", path))
		for _, asked := range []string{"`slowpath version`", "id: recording"} {
			if !strings.Contains(text, asked) {
				t.Errorf("%s does not ask for %s", path, asked)
			}
		}
	}
	text, err := os.ReadFile(".devcontainer/devcontainer.json")
	if err != nil || !json.Valid(text) {
		t.Errorf("devcontainer.json is no JSON: %v", err)
	}
}
