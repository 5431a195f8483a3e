package clients

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
)

// mavenProject downloads the library with Maven, in the versions that pom.xml pins, and compiles the program with the
// JDK.
var mavenProject = recipe{
	source: func(name Name) (source, error) {
		pairs := [][2]string{{"", "_java/program"}, {"", "_java/" + string(name)}}
		if strings.HasPrefix(string(name), "lettuce-") {
			pairs = append(pairs, [2]string{"", "_java/lettuce"}) // one program for both versions
		}
		return gather(pairs...)
	},
	find: func(context.Context) (tools, error) {
		return inPath("apt-get install default-jdk-headless maven", "java", "javac", "mvn")
	},
	build: func(ctx context.Context, t tools, dir string, _ Name) error {
		if err := download(ctx, dir, nil, t["mvn"], "--batch-mode", "--quiet",
			"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
			"-DoutputDirectory=lib", "-DincludeScope=runtime"); err != nil {
			return err
		}
		sources, err := filepath.Glob(filepath.Join(dir, "*.java"))
		if err != nil {
			return err
		}
		return run(ctx, dir, nil, slices.Concat([]string{t["javac"], "-d", "classes", "-cp", filepath.Join("lib", "*")},
			sources)...)
	},
	argv: func(t tools, dir string, _ Name) []string {
		return []string{t["java"], "-cp", filepath.Join(dir, "classes") + ":" + filepath.Join(dir, "lib", "*"), "Main"}
	},
}
