package layout

import (
	"os"
	"testing"
)

func TestStyleOfPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, c := range []struct {
		env     map[string]string
		unicode bool
	}{
		{nil, false},
		{map[string]string{"LANG": "en_US.UTF-8"}, true},
		{map[string]string{"LANG": "C.utf8"}, true},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "C"}, false},
		{map[string]string{"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, true},
		{map[string]string{"LANG": "de_DE.ISO-8859-1"}, false},
	} {
		got := StyleOf(w, func(k string) string { return c.env[k] })
		if want := (Style{Width: 80, Unicode: c.unicode}); got != want {
			t.Errorf("%v: %+v, want %+v", c.env, got, want)
		}
	}
}
