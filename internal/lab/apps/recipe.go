package apps

import (
	"path/filepath"
	"slices"

	"slowpath/internal/lab/apps/appsources"
	"slowpath/internal/lab/toolchain"
)

// recipe builds and starts an application.
type recipe struct {
	chain toolchain.Toolchain
	lang  string // directory of the sources of its language
	// argvs are the command lines of its processes, in the order of their start.
	argvs func(place) [][]string
}

// place is where an application is built, and where it listens if it is a web application.
type place struct {
	tools  toolchain.Tools
	dir    string
	listen string // HOST:PORT
}

func (p place) file(name string) string { return filepath.Join(p.dir, name) }

// source is the files of an application: its own, and the meter of its language.
func (a App) source() (toolchain.Source, error) {
	pairs := [][2]string{{"", a.recipe.lang + "/" + string(a.Name)}}
	switch a.recipe.lang {
	case "_go":
		pairs = append(pairs, [2]string{"", "_go/program"}, [2]string{"meter", "meter"})
	case "_java", "_node", "_python", "_ruby":
		pairs = append(pairs, [2]string{"", a.recipe.lang + "/program"})
	}
	return toolchain.Gather(appsources.Sources, pairs...)
}

// python runs scripts and modules of a Python application, one process each.
func python(processes ...[]string) recipe {
	return recipe{toolchain.Pip, "_python", func(p place) [][]string {
		var argvs [][]string
		for _, args := range processes {
			if args[0] != "-m" {
				args = append([]string{p.file(args[0])}, args[1:]...)
			}
			argvs = append(argvs, append([]string{
				"env", "PYTHONPATH=" + p.dir + ":" + p.file("lib"), p.tools["python3"], "-B",
			}, args...))
		}
		return argvs
	}}
}

// gunicorn serves the WSGI application of a module.
func gunicorn(module string) recipe {
	r := python([]string{
		"-m", "gunicorn", "--workers", "2", "--worker-class", "gthread", "--threads", "4", "--no-control-socket",
	})
	one := r.argvs
	r.argvs = func(p place) [][]string {
		return [][]string{append(one(p)[0], "--bind", p.listen, module+":application")}
	}
	return r
}

// node runs scripts of a Node application, one process each.
func node(scripts ...string) recipe {
	return recipe{toolchain.Node, "_node", func(p place) [][]string {
		var argvs [][]string
		for _, s := range scripts {
			argvs = append(argvs, []string{p.tools["node"], p.file(s)})
		}
		return argvs
	}}
}

// java runs a Java application.
var java = recipe{toolchain.Maven, "_java", func(p place) [][]string {
	return [][]string{toolchain.Java(p.tools, p.dir, "Main", "-Xmx256m")}
}}

// binary runs the program that a compiler has built under a name.
func binary(chain toolchain.Toolchain, lang, name string) recipe {
	return recipe{chain, lang, func(p place) [][]string { return [][]string{{p.file(name)}} }}
}

func golang(name string) recipe { return binary(toolchain.Go, "_go", name) }

var sidekiq = recipe{
	toolchain.Ruby("require 'sidekiq'", "ruby ruby-sidekiq", "sidekiq"), "_ruby",
	func(p place) [][]string {
		return [][]string{
			{p.tools["sidekiq"], "-e", "production", "-c", "5", "-r", p.file("jobs.rb")},
			{p.tools["ruby"], p.file("web.rb")},
		}
	},
}

var puma = recipe{
	toolchain.Ruby("require 'active_support/cache'; require 'active_support/cache/redis_cache_store'",
		"ruby puma ruby-activesupport ruby-redis ruby-connection-pool", "puma"), "_ruby",
	func(p place) [][]string {
		return [][]string{{p.tools["puma"], "-q", "-t", "5:5", "-b", "tcp://" + p.listen, p.file("config.ru")}}
	},
}

// php serves a site with PHP's own web server. check is a statement that fails without the Debian packages.
func php(check, packages string) recipe {
	return recipe{toolchain.PHP(check, packages), "_php", func(p place) [][]string {
		return [][]string{slices.Concat([]string{"env", "PHP_CLI_SERVER_WORKERS=4", p.tools["php"]},
			[]string{"-S", p.listen, "-t", p.dir, p.file("index.php")})}
	}}
}
