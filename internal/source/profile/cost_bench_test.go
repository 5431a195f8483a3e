package profile

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"testing"
)

// BenchmarkReadGoroutines is what one reading takes, of the application and of slowpath together, by how many
// goroutines there are.
func BenchmarkReadGoroutines(b *testing.B) {
	for _, count := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			mux := http.NewServeMux()
			mux.HandleFunc("/debug/pprof/", pprof.Index)
			s := httptest.NewServer(mux)
			defer s.Close()
			ts, err := Targets([]string{s.URL})
			if err != nil {
				b.Fatal(err)
			}
			end := make(chan struct{})
			defer close(end)
			for range count {
				go func() { <-end }()
			}
			c := newClient(Options{}.withDefaults(), ts[0])
			for b.Loop() {
				if _, err := c.profile(b.Context(), "goroutine", 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
