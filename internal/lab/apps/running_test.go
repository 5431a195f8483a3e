package apps

import (
	"errors"
	"testing"
)

func TestUnsupported(t *testing.T) {
	for _, tt := range []struct {
		app Name
		o   Options
	}{
		{"celery", Options{Addr: "127.0.0.1:1", Twemproxy: true}},
		{"telemetry", Options{Addr: "127.0.0.1:1", CACert: "x"}},
	} {
		a, err := Lookup(tt.app)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (Program{App: a}).Start(t.Context(), t.TempDir(), tt.o); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", tt.app, err)
		}
	}
	if _, err := (Program{}).Start(t.Context(), t.TempDir(), Options{}); err == nil {
		t.Error("started without a server")
	}
}
