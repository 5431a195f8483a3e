package schemas

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// resolved are the schemas that documents were held against.
var resolved sync.Map

// Check says what is wrong with a document of the schema that it names. A document without one is not checked.
func Check(document any) error {
	fields, _ := document.(map[string]any)
	name, _ := fields["schema"].(string)
	body, ok := Get(name)
	if !ok {
		return nil
	}
	known, ok := resolved.Load(name)
	if !ok {
		var s jsonschema.Schema
		if err := json.Unmarshal(body, &s); err != nil {
			return fmt.Errorf("the schema of %s: %w", name, err)
		}
		r, err := s.Resolve(nil)
		if err != nil {
			return fmt.Errorf("the schema of %s: %w", name, err)
		}
		known, _ = resolved.LoadOrStore(name, r)
	}
	return known.(*jsonschema.Resolved).Validate(document)
}
