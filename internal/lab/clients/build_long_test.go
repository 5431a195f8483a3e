package clients

import (
	"path/filepath"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/toolchain"
)

// TestProgramsInGoAreClean runs go vet, since go vet of the main module ignores them.
func TestProgramsInGoAreClean(t *testing.T) {
	needs.Long(t)
	for _, c := range Catalogue() {
		if c.Language != "Go" {
			continue
		}
		t.Run(string(c.Name), func(t *testing.T) {
			p := program(t, c.Name)
			dir := filepath.Dir(p.Argv[0])
			found, err := c.recipe.Find(t.Context())
			if err == nil {
				err = toolchain.Vet(t.Context(), found, dir)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}
