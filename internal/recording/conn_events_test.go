package recording

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// TestPackedEvents: of a recording that is judged, the events that begin and end connections are packed. They are the
// same as in its rows, with all fields, in order of time, and apart for each node.
func TestPackedEvents(t *testing.T) {
	const start, events = int64(1_800_000_000e9), 5000
	path := filepath.Join(t.TempDir(), "x.slowpath")
	w, err := Create(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.SetMeta(MetaStart, fmt.Sprint(start))
	kinds := []string{KindOpen, KindClose, KindHandshake}
	for i := range int64(events) {
		e := Event{
			TimeNs: start + i*1e6 - i%5*3e6, DurationNs: i % 2, Source: SourceTap, Subject: fmt.Sprint("node:", i%2),
			Kind: kinds[i%3], Detail: Detail(filled[ConnDetail](int(i % 1000))),
		}
		if e.Kind == KindHandshake {
			e.Detail = Detail(filled[HandshakeDetail](int(i % 1000)))
		}
		if i%7 == 0 {
			e.Detail = "{" // damaged
		}
		w.Event(e)
	}
	w.Event(Event{TimeNs: start, Source: SourceServer, Subject: "node:0", Kind: KindClose})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rows, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := OpenToJudge(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(packed.Events); n != 1 || rows.EventCount() != events+1 || packed.EventCount() != events+1 {
		t.Errorf("%d events are rows; %d and %d in all", n, rows.EventCount(), packed.EventCount())
	}
	_, end := rows.Window()
	if _, packedEnd := packed.Window(); packedEnd != end {
		t.Errorf("it ends at %d, not at %d", packedEnd, end)
	}
	for _, node := range []string{"node:0", "node:1", "none"} {
		a, b := slices.Collect(rows.Conns(node)), slices.Collect(packed.Conns(node))
		if !slices.Equal(a, b) || node != "none" && len(a) < events/4 {
			t.Errorf("%s: %d opens and closes, packed %d", node, len(a), len(b))
		}
		closes := slices.DeleteFunc(a, func(e ConnEvent) bool { return e.Kind != KindClose })
		if !slices.Equal(closes, slices.Collect(packed.Conns(node, KindClose))) {
			t.Errorf("%s: other closes", node)
		}
		h, g := slices.Collect(rows.Handshakes(node)), slices.Collect(packed.Handshakes(node))
		if !reflect.DeepEqual(h, g) || node != "none" && len(h) < events/7 {
			t.Errorf("%s: %d handshakes, packed %d", node, len(h), len(g))
		}
		for range packed.Without(SourceTap).Conns(node) {
			t.Fatal("without the tap there are connections")
		}
	}
}

// filled is a value all of whose fields have a value that depends on n.
func filled[T any](n int) (d T) {
	v := reflect.ValueOf(&d).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString(fmt.Sprint("text ", i, n))
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(n * (i - 3)))
		case reflect.Bool:
			f.SetBool(n%2 == 1)
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{"AUTH", fmt.Sprint("SELECT ", n)}))
		}
	}
	return d
}
