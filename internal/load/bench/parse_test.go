package bench

import (
	"encoding/json"
	"errors"
	"testing"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"schema":"slowpath.bench/v1","latency":{"p99_ns":5},"series":[{}]}`))
	f.Add([]byte(`{"schema":"slowpath.probe/v1"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := Parse(body)
		switch {
		case err != nil && !errors.Is(err, ErrNotResult):
			t.Error(err)
		case err == nil:
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		}
	})
}
