package scenario

import (
	"testing"
)

func TestAppScenarios(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range AppScenarios() {
		in := a.Scenario()
		if seen[in.ID] || in.Make == nil || in.Title == "" || in.Cause == "" {
			t.Errorf("%+v", in)
		}
		seen[in.ID] = true
		if found, ok := Find(in.ID); !ok || found.Cause != in.Cause {
			t.Errorf("%s is not found", in.ID)
		}
		if _, ok := Find(in.Cause); a.Fault != "" && !ok {
			t.Errorf("%s: no scenario %s", in.ID, in.Cause)
		}
	}
	if _, ok := Find("app-nosuch"); ok || !seen["app-celery"] || !seen["app-django-twemproxy"] ||
		!seen["app-rq-packet-loss-rto"] {
		t.Error("not the scenarios of docs/apps.md")
	}
}
