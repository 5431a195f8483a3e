package manyhosts

import (
	"fmt"

	"slowpath/internal/stats"
)

// Shared is what those who suffer have in common, and others do not.
type Shared struct {
	Kind  string `json:"kind"`  // node, caller
	Name  string `json:"name"`  // host, zone, server, library, unit, kernel, ...
	Value string `json:"value"` // "redis 7.2.4"
	// Suffering is how many of those who suffer have it, and Others how many of those who do not.
	Suffering    int64 `json:"suffering"`
	AllSuffering int64 `json:"all_suffering"`
	Others       int64 `json:"others"`
	AllOthers    int64 `json:"all_others"`
}

// String is a trait in a sentence.
func (s Shared) String() string {
	return fmt.Sprintf("%s %s: %d of %d; of the others %d of %d", s.Name, s.Value, s.Suffering, s.AllSuffering,
		s.Others, s.AllOthers)
}

// maxShared is how many traits of a kind are told.
const maxShared = 10

// sharedOf are the traits that more of those who suffer have than chance allows, of each kind those that most have
// first. What one alone has is not in common.
func sharedOf(r Rows) (out []Shared) {
	told := map[string]int{}
	for _, row := range r.Values {
		s := Shared{
			Kind: r.Text(row, "kind"), Name: r.Text(row, "name"), Value: r.Text(row, "value"),
			Suffering: r.Int(row, "suffering"), AllSuffering: r.Int(row, "all_suffering"),
		}
		s.Others, s.AllOthers = r.Int(row, "holders")-s.Suffering, r.Int(row, "entities")-s.AllSuffering
		least, _ := stats.Proportion(int(s.Suffering), int(s.AllSuffering))
		_, most := stats.Proportion(int(s.Others), int(s.AllOthers))
		if s.Suffering > 1 && least > most && told[s.Kind] < maxShared {
			told[s.Kind]++
			out = append(out, s)
		}
	}
	return out
}
