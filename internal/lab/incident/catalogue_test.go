package incident

import "testing"

func TestCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for _, i := range Catalogue() {
		if i.ID == "" || i.Cause == "" || i.Title == "" || i.Make == nil {
			t.Errorf("%q is not complete", i.ID)
		}
		if seen[i.ID] {
			t.Errorf("%q is there twice", i.ID)
		}
		seen[i.ID] = true
	}
}
