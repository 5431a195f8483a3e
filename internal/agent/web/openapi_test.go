package web

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"slowpath/internal/schemas"
)

// TestOpenAPI: the description of the API has each of its addresses, and refers to schemas that there are.
func TestOpenAPI(t *testing.T) {
	body, ok := schemas.Get(schemas.OpenAPI)
	if !ok {
		t.Fatal("there is none")
	}
	var api struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(body, &api); err != nil {
		t.Fatal(err)
	}
	described := 0
	for route := range (&Server{}).answers() {
		method, path, _ := strings.Cut(route, " ")
		if !strings.HasPrefix(path, "/api/") {
			continue
		}
		if _, ok := api.Paths[path][strings.ToLower(method)]; !ok {
			t.Errorf("%s is not described", route)
		}
		described++
	}
	if described == 0 {
		t.Error("the API has no addresses")
	}
	for _, m := range regexp.MustCompile(`"\$ref": "urn:([^"]+)"`).FindAllSubmatch(body, -1) {
		if _, ok := schemas.Get(string(m[1])); !ok {
			t.Errorf("there is no schema %s", m[1])
		}
	}
}
