package scenario

import (
	"testing"
)

func TestAppScenarios(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range AppScenarios() {
		sc := a.Scenario()
		if seen[sc.ID] || sc.Make == nil || sc.Title == "" || sc.Cause == "" {
			t.Errorf("%+v", sc)
		}
		seen[sc.ID] = true
		if found, ok := Find(sc.ID); !ok || found.Cause != sc.Cause {
			t.Errorf("%s is not found", sc.ID)
		}
		if _, ok := Find(sc.Cause); a.Fault != "" && !ok {
			t.Errorf("%s: no scenario %s", sc.ID, sc.Cause)
		}
	}
	if _, ok := Find("app-nosuch"); ok || !seen["app-celery"] || !seen["app-django-twemproxy"] ||
		!seen["app-rq-packet-loss-rto"] {
		t.Error("not the scenarios of docs/apps.md")
	}
}
