package toolchain

import (
	"testing"
)

func TestSourceHash(t *testing.T) {
	a := Source{"main.go": []byte("package main"), "go.mod": []byte("module lab")}
	if a.hash() != (Source{"go.mod": []byte("module lab"), "main.go": []byte("package main")}).hash() {
		t.Error("the order of the files matters")
	}
	for _, b := range []Source{
		{"main.go": []byte("package main")},
		{
			"main.go": []byte("package mai"),
			"go.mod":  []byte("module lab"),
		},
		{"main2.go": []byte("package main"), "go.mod": []byte("module lab")},
	} {
		if a.hash() == b.hash() {
			t.Errorf("%v has the hash of another source", b)
		}
	}
}
