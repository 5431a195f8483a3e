//go:build linux

package clitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"slowpath/internal/schemas"
)

// JSON is "json FILE PATH [VALUE]": every document of FILE has a value there, and this one if it is given. A path
// is keys and indexes with dots between, "." alone the document; a number as the value's length is "PATH# NUMBER". A
// document has to be as its schema says.
func JSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: json FILE PATH [VALUE]")
	}
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	documents := 0
	for ; ; documents++ {
		var doc any
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		ts.Check(err)
		ts.Check(schemas.Check(doc))
		got, err := at(doc, args[1])
		matches := err == nil && (len(args) == 2 || got == args[2])
		if matches == neg {
			ts.Fatalf("%s is %s (%v), want %v (negated: %v)", args[1], got, err, args[2:], neg)
		}
	}
	if documents == 0 {
		ts.Fatalf("%s holds no JSON", args[0])
	}
}

// at prints the value at a path.
func at(doc any, path string) (string, error) {
	path, length := strings.CutSuffix(path, "#")
	for key := range strings.SplitSeq(strings.Trim(path, "."), ".") {
		switch v := doc.(type) {
		case map[string]any:
			child, ok := v[key]
			if !ok && key != "" {
				return "", fmt.Errorf("no key %q", key)
			}
			if key != "" {
				doc = child
			}
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(v) {
				return "", fmt.Errorf("no element %q of %d", key, len(v))
			}
			doc = v[i]
		default:
			return "", fmt.Errorf("no %q in a scalar", key)
		}
	}
	if list, ok := doc.([]any); ok && length {
		return strconv.Itoa(len(list)), nil
	}
	return fmt.Sprint(doc), nil
}
