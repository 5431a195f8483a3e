package clients

import (
	"path/filepath"
	"strings"

	"slowpath/internal/lab/clients/programs"
	"slowpath/internal/lab/toolchain"
)

// recipe builds and starts the programs of one toolchain.
type recipe struct {
	toolchain.Toolchain
	source func(Name) (toolchain.Source, error)
	argv   func(t toolchain.Tools, dir string, name Name) []string
}

func gather(pairs ...[2]string) (toolchain.Source, error) {
	return toolchain.Gather(programs.Sources, pairs...)
}

var goModule = recipe{
	Toolchain: toolchain.Go,
	source: func(name Name) (toolchain.Source, error) {
		return gather([2]string{"", "_go/program"}, [2]string{"", "_go/" + string(name)},
			[2]string{"protocol", "protocol"})
	},
	argv: built,
}

var mavenProject = recipe{
	Toolchain: toolchain.Maven,
	source: func(name Name) (toolchain.Source, error) {
		pairs := [][2]string{{"", "_java/program"}, {"", "_java/" + string(name)}}
		if strings.HasPrefix(string(name), "lettuce-") {
			pairs = append(pairs, [2]string{"", "_java/lettuce"}) // one program for both versions
		}
		return gather(pairs...)
	},
	argv: func(t toolchain.Tools, dir string, _ Name) []string { return toolchain.Java(t, dir, "Main") },
}

var nodePackage = recipe{
	Toolchain: toolchain.Node,
	source: func(name Name) (toolchain.Source, error) {
		return gather([2]string{"", "_node/program"}, [2]string{"", "_node/" + string(name)})
	},
	argv: func(t toolchain.Tools, dir string, _ Name) []string {
		return []string{t["node"], filepath.Join(dir, "main.mjs")}
	},
}

var pipPackage = recipe{
	Toolchain: toolchain.Pip,
	source: func(name Name) (toolchain.Source, error) {
		s, err := pythonSource(name)
		if err == nil {
			err = s.Add(programs.Sources, "", "_python/"+string(name)+"-requirements.txt")
		}
		return s, err
	},
	argv: pythonArgv,
}

var debianPython = recipe{Toolchain: toolchain.DebianPython, source: pythonSource, argv: pythonArgv}

var hiredisC = recipe{
	Toolchain: toolchain.HiredisC,
	source:    func(name Name) (toolchain.Source, error) { return gather([2]string{"", "_c/" + string(name)}) },
	argv:      built,
}

var cargoCrate = recipe{
	Toolchain: toolchain.Cargo,
	source:    func(name Name) (toolchain.Source, error) { return gather([2]string{"", "_rust/" + string(name)}) },
	argv:      built,
}

// built is the program that a compiler has built under its name.
func built(_ toolchain.Tools, dir string, name Name) []string {
	return []string{filepath.Join(dir, string(name))}
}

func pythonSource(name Name) (toolchain.Source, error) {
	return gather([2]string{"", "_python/program.py"}, [2]string{"", "_python/" + string(name) + ".py"})
}

func pythonArgv(t toolchain.Tools, dir string, name Name) []string {
	return toolchain.Python(t, dir, filepath.Join(dir, string(name)+".py"))
}
