package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slowpath/internal/agent/web"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/manyhosts"
	"slowpath/internal/outfile"
)

// TestSourceOfTenants: each tenant has the source that its name makes, and recordings that come are read.
func TestSourceOfTenants(t *testing.T) {
	dir := t.TempDir()
	add := func(tenant, scenario string) {
		t.Helper()
		in := filepath.Join(dir, tenant, "host="+scenario)
		err := outfile.Directory(in)
		if err == nil {
			err = corpus.Unpack(scenario, filepath.Join(in, "a.slowpath"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add("shop", "slow-command")
	add("bank", "server-cfs-throttled")
	s := &shownSources{
		app: appOn(io.Discard, io.Discard), source: filepath.Join(dir, tenantPlace), all: map[string]*shownSource{},
	}
	defer s.close()
	causes := func(tenant string) string {
		t.Helper()
		opened, err := s.open(t.Context(), tenant, web.When{})
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Done()
		why, _ := manyhosts.QuestionOf("why")
		a, err := manyhosts.Ask(t.Context(), opened.Source, why, manyhosts.Filter{
			From: opened.From, To: opened.To, Limit: 10, Step: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, row := range a.Rows.Values {
			out = append(out, a.Rows.Text(row, "cause"))
		}
		return strings.Join(out, " ")
	}
	for range 2 {
		if shop, bank := causes("shop"), causes("bank"); shop != "slow-command" || bank != "server-cfs-throttled" {
			t.Errorf("shop has %q, bank %q", shop, bank)
		}
	}
	add("shop", "big-key-io")
	s.all["shop"].opened = time.Time{} // long ago
	if got := causes("shop"); !strings.Contains(got, "big-key-io") || !strings.Contains(got, "slow-command") {
		t.Errorf("with one more: %q", got)
	}
	if _, err := s.open(t.Context(), "nobody", web.When{}); err == nil {
		t.Error("a tenant without a directory has a source")
	}
}
