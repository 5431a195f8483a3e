//go:build linux

package serving

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"slowpath/internal/cli"
	"slowpath/internal/source/hostfs"
)

// mostConfigBytes bounds a configuration file.
const mostConfigBytes = 256 << 10

// configTargets is the option of a configuration file that is no flag: the servers.
const configTargets = "targets"

// configFile is a configuration file of serve: flags by their names, without the dashes.
type configFile struct {
	path    string
	lines   map[string]int // of each option
	targets []string
}

// errorAt is an error of a line, as editors jump to it.
func (c *configFile) errorAt(line int, format string, args ...any) error {
	return cli.Usagef("%s:%d: %w", c.path, line, fmt.Errorf(format, args...))
}

// readConfig sets the flags that a configuration file names, unless the command line has set them. notInFile are flags
// that only the command line has.
func readConfig(path string, flags *pflag.FlagSet, notInFile ...string) (*configFile, error) {
	text, err := hostfs.ReadRegular(hostfs.Root{}, path, mostConfigBytes)
	if err != nil {
		return nil, cli.Usagef("the configuration cannot be read: %w", err)
	}
	c := &configFile{path: path, lines: map[string]int{}}
	top, err := c.parse(text)
	if top == nil {
		return c, err
	}
	known := []string{configTargets}
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && !slices.Contains(notInFile, f.Name) {
			known = append(known, f.Name)
		}
	})
	for i := 0; i < len(top.Content); i += 2 {
		if err := c.set(flags, known, top.Content[i], top.Content[i+1]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// parse gives the mapping of options; nil where the file has none.
func (c *configFile) parse(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var file, more yaml.Node
	err := decoder.Decode(&file)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil && decoder.Decode(&more) == nil {
		return nil, c.errorAt(more.Line, "a second document: remove the line ---")
	}
	if err != nil {
		return nil, cli.Usagef("%s", c.syntax(err))
	}
	top := file.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return nil, nil
	}
	if top.Kind != yaml.MappingNode {
		return nil, c.errorAt(top.Line, "no options: write each as in \"slow: 10ms\"")
	}
	return top, nil
}

// yamlLine is how the library says where a fault is.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func (c *configFile) syntax(err error) string {
	line, text := "1", err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		if text = strings.TrimPrefix(text, m[0]); m[1] != "" {
			line = m[1]
		}
	}
	return fmt.Sprintf("%s:%s: no YAML: %s; write one option per line, as in \"slow: 10ms\", without tabs", c.path,
		line, text)
}

// set sets one option.
func (c *configFile) set(flags *pflag.FlagSet, known []string, key, value *yaml.Node) error {
	name := key.Value
	switch before, twice := c.lines[name]; {
	case key.Kind != yaml.ScalarNode:
		return c.errorAt(key.Line, "no option: write each as in \"slow: 10ms\"")
	case twice:
		return c.errorAt(key.Line, "%s is in line %d, too: leave one of them out", name, before)
	case !slices.Contains(known, name):
		return c.errorAt(key.Line, "unknown option %q%s; all are in: slowpath serve --help", name,
			cli.DidYouMean(name, known))
	}
	c.lines[name] = key.Line
	values, err := c.values(name, value)
	if err != nil {
		return err
	}
	if name == configTargets {
		c.targets = values
		return nil
	}
	f := flags.Lookup(name)
	list, isList := f.Value.(pflag.SliceValue)
	switch {
	case f.Changed: // the command line wins
		return nil
	case len(values) != 1 && !isList:
		return c.errorAt(value.Line, "%s takes one value, not a list", name)
	case isList:
		err = list.Replace(values)
	default:
		err = f.Value.Set(values[0])
	}
	if err != nil {
		return c.errorAt(value.Line, "%s: %q: give %s", name, values[0], wanted(f))
	}
	return nil
}

// values are one value or a list of them, as text.
func (c *configFile) values(name string, node *yaml.Node) ([]string, error) {
	nodes := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		nodes = node.Content
	}
	var out []string
	for _, n := range nodes {
		if n.Kind != yaml.ScalarNode {
			return nil, c.errorAt(n.Line, "%s: give a value or a list of values", name)
		}
		if n.Tag == "!!null" || n.Value == "" {
			return nil, c.errorAt(n.Line, "%s is empty: give a value, or leave it out", name)
		}
		out = append(out, n.Value)
	}
	if len(out) == 0 {
		return nil, c.errorAt(node.Line, "%s is empty: give a value, or leave it out", name)
	}
	return out, nil
}

// wanted says in a few words what a flag takes.
func wanted(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 90s or 15m"
	case "int", "int64", "float64":
		return "a number"
	case cli.SizeType:
		return "a size such as 64MB"
	}
	return "another value; see: slowpath serve --help"
}

// flagInError finds the flag that an error is about.
var flagInError = regexp.MustCompile(`^--([a-z0-9-]+)`)

// locate adds the line of the file to an error about an option that the file has set.
func (c *configFile) locate(err error, flags *pflag.FlagSet) error {
	if c == nil || err == nil {
		return err
	}
	m := flagInError.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	line, inFile := c.lines[m[1]]
	if f := flags.Lookup(m[1]); !inFile || f != nil && f.Changed {
		return err
	}
	return cli.Usagef("%s:%d: %s", c.path, line, strings.TrimPrefix(err.Error(), "--"))
}
