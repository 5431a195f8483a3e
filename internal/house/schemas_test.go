package house

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/agent/notify"
	"slowpath/internal/agent/web"
	"slowpath/internal/diagnose/compare"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/lab/grade"
	"slowpath/internal/lab/matrix"
	"slowpath/internal/lab/random"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/experiment"
	"slowpath/internal/manyhosts"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
	"slowpath/internal/schemas"
	"slowpath/internal/top"
	"slowpath/internal/topology/simulate"
	"slowpath/internal/topology/survey"
	"slowpath/internal/trace"
)

// documents are all that slowpath prints as JSON with a schema, by that.
var documents = map[string]any{
	verdict.Schema:            verdict.Diagnosis{},
	compare.Schema:            compare.Comparison{},
	grade.Schema:              gradeDocument{},
	trace.Schema:              trace.Call{},
	top.Schema:                top.Document{},
	bench.Schema:              bench.Result{},
	experiment.SweepSchema:    experiment.Sweep{},
	experiment.CapacitySchema: experiment.Capacity{},
	experiment.RepeatsSchema:  experiment.Repeats{},
	experiment.TargetsSchema:  experiment.Targets{},
	survey.Schema:             survey.Report{},
	simulate.Schema:           simulate.Report{},
	matrix.Schema:             matrix.Matrix{},
	matrix.PoolSchema:         matrix.PoolSweep{},
	report.CausesSchema:       report.Causes{},
	notify.Schema:             notify.Message{},
	manyhosts.Schema:          manyhosts.Document{},
	web.ErrorSchema:           web.Error{},
	web.HealthSchema:          web.Health{},
	web.IncidentsSchema:       web.Incidents{},
	web.TriggeredSchema:       web.Triggered{},
	web.MarksSchema:           web.Marks{},
	web.OverviewSchema:        web.Overview{},
	web.LiveSchema:            web.Live{},
	web.SlowSchema:            web.SlowCalls{},
	web.MapSchema:             web.Map{},
}

// gradeDocument is that of scenarios, or of drawn ones: it has the fields of one of them.
type gradeDocument struct {
	Scenarios grade.Summary `json:",omitempty"`
	Drawn     random.Report `json:",omitempty"`
}

// schema is a part of JSON Schema 2020-12.
type schema struct {
	Dialect     string             `json:"$schema,omitempty"`
	ID          string             `json:"$id,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        any                `json:"type,omitempty"`
	Const       string             `json:"const,omitempty"`
	Format      string             `json:"format,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Values      *schema            `json:"additionalProperties,omitempty"` // of a map
}

// TestSchemas: each document has a schema, whose fields are those of its type, and each field says what it means. With
// -update the fields are written anew, and what is said of them stays.
func TestSchemas(t *testing.T) {
	for name, document := range documents {
		file := filepath.Join("internal/schemas", strings.ReplaceAll(name, "/", ".")+".json")
		old := &schema{}
		body, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(body, old)
		}
		if err != nil && !*update {
			t.Errorf("%s: %v: run make docs", name, err)
			continue
		}
		now := schemaOf(reflect.TypeOf(document), old)
		now.Dialect, now.ID = "https://json-schema.org/draft/2020-12/schema", "urn:"+name
		now.Properties["schema"].Const = name
		undescribed(now, "", func(path string) { t.Errorf("%s: %s does not say what it means: %s", name, path, file) })
		var want bytes.Buffer
		if err := layout.JSON(&want, "the schema", now); err != nil {
			t.Fatal(err)
		}
		generated(t, file, want.Bytes())
	}
	for _, name := range schemas.Names() {
		if _, ok := documents[name]; !ok && name != schemas.OpenAPI {
			t.Errorf("there is no document %s", name)
		}
	}
}

// schemaOf is the schema of a type, with what an old one says of it.
func schemaOf(typ reflect.Type, old *schema) *schema {
	if old == nil {
		old = &schema{}
	}
	s := &schema{Title: old.Title, Description: old.Description}
	switch {
	case typ.Kind() == reflect.Pointer:
		s = schemaOf(typ.Elem(), old)
		s.Type = []any{s.Type, "null"}
	case typ == reflect.TypeFor[time.Time]():
		s.Type, s.Format = "string", "date-time"
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() != reflect.Uint8:
		s.Type, s.Items = "array", schemaOf(typ.Elem(), old.Items)
	case typ.Kind() == reflect.Map:
		s.Type, s.Values = "object", schemaOf(typ.Elem(), old.Values)
	case typ.Kind() == reflect.Struct:
		s.Type, s.Properties = "object", map[string]*schema{}
		s.addFields(typ, old)
	case typ.Kind() == reflect.String:
		s.Type = "string"
	case typ.Kind() == reflect.Bool:
		s.Type = "boolean"
	case typ.Kind() == reflect.Float64:
		s.Type = "number"
	case typ.Kind() >= reflect.Int && typ.Kind() <= reflect.Uint64:
		s.Type = "integer"
	}
	return s
}

// addFields adds the fields of a struct, and of those that are embedded in it.
func (s *schema) addFields(typ reflect.Type, old *schema) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case name == "":
			s.addFields(f.Type, old)
			if !f.Anonymous {
				s.Required = nil // one of several
			}
		default:
			s.Properties[name] = schemaOf(f.Type, old.Properties[name])
			if !strings.Contains(options, "omit") && !slices.Contains(s.Required, name) {
				s.Required = append(s.Required, name)
			}
		}
	}
}

// undescribed tells of the leaves that say nothing, nor what they are in.
func undescribed(s *schema, path string, tell func(path string)) {
	switch {
	case s.Description != "":
	case s.Items != nil:
		undescribed(s.Items, path+"[]", tell)
	case s.Values != nil:
		undescribed(s.Values, path+".*", tell)
	case len(s.Properties) > 0:
		for name, one := range s.Properties {
			undescribed(one, strings.TrimPrefix(path+"."+name, "."), tell)
		}
	default:
		tell(path)
	}
}
