package benchmark

import (
	"bytes"
	"testing"

	"slowpath/internal/house/golden"
)

// TestSmallSet: benchmark/table.txt is what the tools that come along get for the incidents in the tree.
func TestSmallSet(t *testing.T) {
	s := Set{"../../../benchmark"}
	incidents, err := s.Incidents()
	if err != nil {
		t.Fatal(err)
	}
	var answers []Answer
	for _, in := range incidents {
		for _, tool := range Tools("dev") {
			a, err := tool.Answer(s, in)
			if err != nil {
				t.Fatal(err)
			}
			a.Tool, a.Incident = tool.Name, in.ID
			answers = append(answers, a)
		}
	}
	r, err := s.Grade(answers)
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	r.Table(&table)
	golden.Check(t, "../../../../benchmark/table.txt", table.Bytes())
}
