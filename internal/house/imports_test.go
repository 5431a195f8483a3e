package house

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers is the order of the packages (docs/architecture.md): a package may import those of lower layers only.
var layers = map[string]int{
	"internal/clock":   0,
	"internal/format":  0,
	"internal/stats":   0,
	"internal/outfile": 0,

	"internal/bucket":            1,
	"internal/bucket/buckettest": 2, // for tests

	"internal/house":           0, // tests alone
	"internal/house/needs":     0,
	"internal/house/await":     0,
	"internal/house/suite":     1,
	"internal/house/memnet":    0,
	"internal/house/changelog": 0,
	"internal/house/golden":    1, // for tests

	"internal/house/prometheustest": 1, // for tests

	"internal/wire/resp":     0,
	"internal/wire/target":   0,
	"internal/wire/cluster":  1, // parses replies
	"internal/wire/session":  1,
	"internal/wire/wiretest": 1, // for tests

	"internal/recording":        1,
	"internal/recording/series": 0,
	"internal/recording/join":   9,

	"internal/source/probe":                          2,
	"internal/source/server":                         2,
	"internal/source/host":                           2,
	"internal/source/hostfs":                         0,
	"internal/source/privilege":                      0,
	"internal/source/tap":                            2,
	"internal/source/capture":                        2,
	"internal/source/pasted":                         3,
	"internal/source/capture/sniffer":                1,
	"internal/source/profile":                        9,
	"internal/source/profile/stacks":                 0,
	"internal/source/profile/symbol":                 1,
	"internal/source/profile/sampler":                2,
	"internal/source/profile/interpreter":            2,
	"internal/source/profile/interpreter/memorytest": 3, // for tests
	"internal/source/profile/python":                 3,
	"internal/source/profile/ruby":                   3,
	"internal/source":                                10,

	"internal/agent/ring":              2,
	"internal/agent/apart":             0,
	"internal/agent/folder":            1,
	"internal/agent/folder/foldertest": 2,
	"internal/agent/door":              2,
	"internal/agent/incidents":         2,
	"internal/agent/judge":             2,
	"internal/agent/metrics":           3,
	"internal/agent/delivery":          0,
	"internal/agent/upload":            3,
	"internal/agent/notify":            12,
	"internal/agent/otlp":              12,
	"internal/manyhosts":               13,
	"internal/assistant":               14,

	"internal/trace": 3,

	"internal/diagnose/degree":  0,
	"internal/diagnose/account": 2,
	"internal/diagnose/facts":   3,

	"internal/diagnose/facts/hosts":      4,
	"internal/diagnose/facts/caller":     5,
	"internal/diagnose/facts/connection": 6,
	"internal/diagnose/facts/mainthread": 7,
	"internal/diagnose/facts/nodes":      8,

	"internal/diagnose/remedy":  9,
	"internal/diagnose/changes": 9,
	"internal/diagnose/law":     9,
	"internal/diagnose/cause":   10,
	"internal/diagnose/verdict": 11,
	"internal/diagnose/compare": 12,
	"internal/diagnose/corpus":  2, // recordings for tests

	"internal/diagnose/bounds":              0,
	"internal/diagnose/sensitivity":         1,
	"internal/diagnose/sensitivity/scale":   0,
	"internal/diagnose/sensitivity/rejudge": 12,

	"internal/load/workload":    2,
	"internal/load/engine":      3,
	"internal/load/bench":       9,
	"internal/load/experiment":  2,
	"internal/load/scalability": 1,
	"internal/load/bottleneck":  1,
	"internal/load/monitor":     3,
	"internal/load/results":     10,

	"internal/topology/cost":     2,
	"internal/topology/simulate": 3,
	"internal/topology/survey":   3,
	"internal/topology/watch":    2,
	"internal/topology/views":    9,

	"internal/live": 2, "internal/live/accounting": 3,

	"internal/schemas":            0,
	"internal/report":             13,
	"internal/report/layout":      0,
	"internal/report/browsertest": 0, // for tests
	"internal/top":                14,

	"internal/lab/clients/programs":          0,
	"internal/lab/clients/programs/protocol": 0,
	"internal/lab/toolchain":                 2,
	"internal/lab/clients":                   3,
	"internal/lab/apps/appsources":           0,
	"internal/lab/apps/appsources/meter":     0,
	"internal/lab/apps":                      3,
	"internal/lab/codis":                     1,
	"internal/lab/servers":                   1,
	"internal/lab/step":                      0,
	"internal/lab/fleet":                     2,
	"internal/lab/fleettest":                 3,
	"internal/lab/clusters":                  3,
	"internal/lab/traffic":                   1,
	"internal/lab/fault":                     3,
	"internal/lab/sink":                      0,
	"internal/lab/matrix":                    12,
	"internal/lab/scenario":                  10,
	"internal/lab/curate":                    11,
	"internal/lab/fleetscale":                14,
	"internal/lab/grade":                     12,
	"internal/lab/random":                    13,
	"internal/lab/benchmark":                 14,

	"internal/agent":     13,
	"internal/agent/web": 15,

	"site/generate": 14,
	"site/picture":  0,

	"internal/cli":         13,
	"internal/cli/named":   14,
	"internal/cli/clitest": 15, // for tests
	"internal/benching":    15,
	"internal/capturing":   15,
	"internal/mapping":     15,
	"internal/probing":     15,
	"internal/serving":     16,
	"internal/tracing":     15,
	"internal/watching":    15,

	"cmd/slowpath":     17,
	"cmd/slowpath-lab": 17,
}

// TestImportsGoDown fails when a package imports upwards or sideways.
func TestImportsGoDown(t *testing.T) {
	seen := map[string]bool{}
	imports := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "_") {
			return filepath.SkipDir // as the go command does: modules of their own (internal/lab/clients/programs)
		}
		if err == nil && (path == "examples" || path == "packaging") {
			return filepath.SkipDir // modules of their own
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		from := filepath.ToSlash(filepath.Dir(path))
		layer, known := layers[from]
		if !known {
			t.Errorf("%s: package %s has no layer; add it to this test and to docs/architecture.md", path, from)
			return nil
		}
		seen[from] = true
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range f.Imports {
			name, _ := strconv.Unquote(imp.Path.Value) // the parser has checked it
			to, own := strings.CutPrefix(name, "slowpath/")
			if !own {
				continue
			}
			imports[from] = append(imports[from], to)
			if l, ok := layers[to]; !ok || l >= layer {
				t.Errorf("%s imports %s: imports may only go down", path, to)
			}
			if inLab(to) && !inLab(from) {
				t.Errorf("%s imports %s: the lab uses the product, and not the other way round", path, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for p := range layers {
		if !seen[p] {
			t.Errorf("layer of %s, which does not exist", p)
		}
	}
	for _, w := range without {
		for _, to := range reachable(imports, w.from) {
			if to == w.no || strings.HasPrefix(to, w.no+"/") {
				t.Errorf("%s is linked with %s: %s", w.from, to, w.why)
			}
		}
	}
}

// without are packages that link nothing of others, in no way.
var without = []struct{ from, no, why string }{
	{"cmd/slowpath", "internal/lab", "a program of production makes no faults; they are in cmd/slowpath-lab"},
	{"internal/report", "internal/load", "what loads came to is shown by internal/load/results"},
	{"internal/report", "internal/topology/simulate", "what it finds is shown by internal/topology/views"},
}

// reachable are the packages that one imports, and all that these import.
func reachable(imports map[string][]string, from string) (all []string) {
	for _, to := range imports[from] {
		if !slices.Contains(all, to) {
			all = append(all, to)
		}
	}
	for i := 0; i < len(all); i++ { // it grows
		for _, to := range imports[all[i]] {
			if !slices.Contains(all, to) {
				all = append(all, to)
			}
		}
	}
	return all
}

func inLab(pkg string) bool {
	return strings.HasPrefix(pkg, "internal/lab/") || pkg == "cmd/slowpath-lab"
}

// TestForeignFiles: sources open files of other processes through hostfs and withELF alone, which wait for nothing.
func TestForeignFiles(t *testing.T) {
	opens := []string{
		"os.Open(", "os.OpenFile(", "os.ReadFile(", "os.Stat(", "elf.Open(", "buildinfo.ReadFile(", "os.ReadDir(",
	}
	err := filepath.WalkDir("internal/source", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasPrefix(path, "internal/source/hostfs/") ||
			strings.HasPrefix(path, "internal/source/profile/interpreter/memorytest/") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, call := range opens {
			if strings.Contains(string(text), call) {
				t.Errorf("%s: %s): use hostfs, the file may be a pipe, a device, or without end", path, call)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFilesWritten: what slowpath writes is made by outfile, which follows no link. The lab has directories of its own.
func TestFilesWritten(t *testing.T) {
	writes := []string{
		"os.Create(", "os.WriteFile(", "os.OpenFile(", "os.CreateTemp(", "os.Mkdir(", "os.MkdirAll(", "os.Rename(",
	}
	for _, folder := range []string{
		"cmd", "internal/source", "internal/recording", "internal/report", "internal/load", "internal/topology",
		"internal/top", "internal/trace", "internal/wire", "internal/cli", "internal/benching", "internal/capturing",
		"internal/mapping", "internal/probing", "internal/serving", "internal/tracing", "internal/watching",
	} {
		forbidIn(t, folder, []string{
			"internal/source/hostfs/root.go", "internal/report/browsertest/browsertest.go", // pictures of a test
			"internal/cli/clitest/helps.go", "internal/cli/clitest/process.go",
			"internal/source/profile/interpreter/memorytest/memory.go",
			"internal/source/profile/interpreter/memorytest/program.go",
		}, writes, "use outfile")
	}
	forbidIn(t, "internal/agent", nil, writes, "use folder")
}

// TestFilesOfTheAgent: what the agent keeps is reached through package folder, which follows no link, and by no path.
func TestFilesOfTheAgent(t *testing.T) {
	for _, in := range []string{"incidents", "ring", "web", "judge", "door"} {
		forbidIn(t, "internal/agent/"+in, nil, []string{
			"os.Open(", "os.OpenRoot(", "os.ReadFile(", "os.ReadDir(", "os.Stat(", "os.Lstat(", "os.Remove(",
			"os.RemoveAll(", "os.MkdirTemp(", "os.Link(", "os.Truncate(", "filepath.Join(", "filepath.Walk",
		}, "use folder")
	}
}

// TestOutput: documents go to stdout by layout.JSON and layout.JSONLine, which escape what a terminal would obey.
func TestOutput(t *testing.T) {
	for _, folder := range []string{
		"cmd", "internal/cli", "internal/benching", "internal/capturing", "internal/mapping", "internal/probing",
		"internal/serving", "internal/tracing", "internal/watching",
	} {
		forbidIn(t, folder, nil, []string{"json.NewEncoder("}, "use layout.JSON or layout.JSONLine")
	}
}

// forbidIn fails where the code below a folder has one of these texts, except in the files with these names.
func forbidIn(t *testing.T, folder string, except, texts []string, instead string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			slices.Contains(except, filepath.ToSlash(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		for _, call := range texts {
			if strings.Contains(string(text), call) {
				t.Errorf("%s: %s): %s", path, call, instead)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
