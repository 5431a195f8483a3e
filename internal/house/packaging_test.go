package house

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPackageFiles: the configuration of the packages names files that exist, or that scripts/packages makes.
func TestPackageFiles(t *testing.T) {
	made := read(t, "scripts/packages")
	sources := regexp.MustCompile(`(?m)^ +(?:- src|post\w+|pre\w+): (\S+)$`).FindAllStringSubmatch(
		read(t, "packaging/nfpm.yaml")+read(t, "packaging/lab.yaml"), -1)
	if len(sources) < 15 {
		t.Fatalf("packaging/*.yaml name %d files", len(sources))
	}
	for _, m := range sources {
		source := m[1]
		if name, ok := strings.CutPrefix(source, "${WORK}/"); ok {
			name, _, _ = strings.Cut(strings.TrimPrefix(name, "${ARCH}/"), "/*")
			name, _, _ = strings.Cut(name, "completion.")
			if name != "" && !strings.Contains(made, "/"+name) {
				t.Errorf("scripts/packages does not make %s", source)
			}
			continue
		}
		if _, err := os.Stat(source); err != nil {
			t.Errorf("packaging/*.yaml: %v", err)
		}
	}
}

// TestUnitCapabilities: the service has the capabilities that the agent keeps when root starts it, and no others. What
// privilege refuses by seccomp, the unit refuses, too.
func TestUnitCapabilities(t *testing.T) {
	unit := read(t, "packaging/systemd/slowpath.service")
	want := capabilitiesOfAgent(t)
	for _, setting := range []string{"AmbientCapabilities", "CapabilityBoundingSet"} {
		got := settingOf(unit, setting)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s of the unit are %s, the code keeps %s", setting, got, want)
		}
	}
	for _, c := range want {
		if !strings.Contains(unit, "# "+c) && !strings.Contains(unit, ", "+c+":") {
			t.Errorf("the unit does not say what %s is for", c)
		}
	}
	refused := settingOf(unit, "SystemCallFilter")
	code := read(t, "internal/source/privilege/seccomp_linux.go")
	calls, found := between(code, "var refusedCalls = []uint32{", "\n}")
	if !found {
		t.Fatal("seccomp_linux.go has no list of system calls that are refused")
	}
	for _, m := range regexp.MustCompile(`SYS_([A-Z_]+)`).FindAllStringSubmatch(calls, -1) {
		if name := strings.ToLower(m[1]); !slices.Contains(refused, name) && !slices.Contains(refused, "~"+name) {
			t.Errorf("the unit does not refuse %s, which the program does", name)
		}
	}
}

// TestManifestCapabilities: so do the containers of the manifests for Kubernetes, and the chart says what for.
func TestManifestCapabilities(t *testing.T) {
	want := capabilitiesOfAgent(t)
	const chart = "packaging/helm/slowpath/templates/agent.yaml"
	const plugin = "packaging/kubernetes/kubectl-slowpath"
	for _, file := range []string{chart, "packaging/kubernetes/base/slowpath.yaml", plugin} {
		added, found := between(read(t, file), "add:\n", "seccomp")
		if file == plugin {
			added, found = between(read(t, file), `"add": [`, "]")
		}
		var got []string
		for _, m := range regexp.MustCompile(`(?m)^ +- ([A-Z_]+)|"([A-Z_]+)"`).FindAllStringSubmatch(added, -1) {
			got = append(got, "CAP_"+m[1]+m[2])
			if file == chart && !regexp.MustCompile(`- `+m[1]+` # \w`).MatchString(added) {
				t.Errorf("%s does not say what %s is for", file, m[1])
			}
		}
		slices.Sort(got)
		if !found || !slices.Equal(got, want) {
			t.Errorf("%s adds %s, the code keeps %s", file, got, want)
		}
	}
}

// capabilitiesOfAgent are those that the code keeps, in order.
func capabilitiesOfAgent(t *testing.T) []string {
	t.Helper()
	kept, found := between(read(t, "internal/source/privilege/privilege_linux.go"), "var kept = []int{", "\n}")
	if !found {
		t.Fatal("privilege_linux.go has no list of capabilities that are kept")
	}
	want := regexp.MustCompile(`CAP_[A-Z_]+`).FindAllString(kept, -1)
	want = append(want, "CAP_BPF") // the agent loads programs again, when servers come and go
	slices.Sort(want)
	return slices.Compact(want)
}

// settingOf are the words of all lines of a setting.
func settingOf(unit, name string) (words []string) {
	for _, m := range regexp.MustCompile(`(?m)^`+name+`=(.*)$`).FindAllStringSubmatch(unit, -1) {
		words = append(words, strings.Fields(m[1])...)
	}
	return words
}

// between is what stands between two texts.
func between(text, begin, end string) (string, bool) {
	_, text, found := strings.Cut(text, begin)
	text, _, ended := strings.Cut(text, end)
	return text, found && ended
}
