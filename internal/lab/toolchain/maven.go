package toolchain

import (
	"context"
	"path/filepath"
	"slices"
)

// Maven downloads the libraries with Maven into lib, in the versions that pom.xml pins, and compiles the program with
// the JDK into classes.
var Maven = Toolchain{
	Find: func(context.Context) (Tools, error) {
		return inPath("apt-get install default-jdk-headless maven", "java", "javac", "mvn")
	},
	build: func(ctx context.Context, t Tools, dir, _ string) error {
		if err := download(ctx, dir, nil, t["mvn"], "--batch-mode", "--quiet",
			"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
			"-DoutputDirectory=lib", "-DincludeScope=runtime"); err != nil {
			return err
		}
		sources, err := filepath.Glob(filepath.Join(dir, "*.java"))
		if err != nil {
			return err
		}
		// frameworks read the names of parameters
		return run(ctx, dir, nil, slices.Concat([]string{
			t["javac"], "-parameters", "-d", "classes",
			"-cp", filepath.Join("lib", "*"),
		}, sources)...)
	},
}

// Java is the command line of a program that Maven has built.
func Java(t Tools, dir, class string, options ...string) []string {
	path := filepath.Join(dir, "classes") + ":" + filepath.Join(dir, "lib", "*")
	return slices.Concat([]string{t["java"]}, options, []string{"-cp", path, class})
}
