// Package schemas has the JSON Schema (2020-12) of each document that slowpath prints, and the description of the
// agent's API in OpenAPI. Their fields are those of the Go types, which internal/house checks; what fields mean is
// written in them, and nowhere else.
package schemas

import (
	"embed"
	"slices"
	"strings"
)

//go:embed *.json
var files embed.FS

// OpenAPI is the name of the description of the agent's API.
const OpenAPI = "openapi"

// file is where a schema is: slowpath.top/v1 in slowpath.top.v1.json.
func file(name string) string { return strings.ReplaceAll(name, "/", ".") + ".json" }

// Names are the names of all documents, such as slowpath.diagnosis/v1, and OpenAPI.
func Names() (all []string) {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // they are in the program
	}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".json")
		if i := strings.LastIndex(name, ".v"); i > 0 {
			name = name[:i] + "/" + name[i+1:]
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// Get is the schema of a name.
func Get(name string) (body []byte, ok bool) {
	if !slices.Contains(Names(), name) {
		return nil, false
	}
	body, err := files.ReadFile(file(name))
	return body, err == nil
}
