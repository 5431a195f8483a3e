package workload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/wire/resp"
)

func verified(t testing.TB, commands ...string) *Workload {
	t.Helper()
	return compiled(t, Options{
		Commands: commands, Keys: Keys{High: 299}, Sizes: Sizes{low: 0, high: 300}, Verify: true,
		Seed: 5,
	})
}

func contents(t *testing.T) map[string]Content {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(file, []byte("one\ntwo\n\nfour and more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]Content{}
	for _, text := range []string{"random", "zero", "compressible:50%", "file:" + file} {
		c, err := ParseContent(text, os.ReadFile)
		if err != nil {
			t.Fatal(err)
		}
		all[text] = c
	}
	return all
}

// What was written for a key is right for that key, and nothing else is: no byte may differ, none be missing or too
// much, and another key's value or seed is found out.
func TestValuesTellTheirKey(t *testing.T) {
	for name, content := range contents(t) {
		for _, size := range []int{8, 9, 100, 1024, poolBytes, 3*poolBytes + 17} {
			v := newValues(Sizes{low: 8, high: 4 * poolBytes}, content, 5)
			r := newRNG(9)
			for key := range uint64(20) {
				if content.lines != nil {
					size = v.size(&r, key)
				}
				value := v.append([]byte("before"), key, size)[6:]
				if len(value) != size || v.check(value, key) != nil {
					t.Fatalf("%s: own value of %d bytes: %v", name, size, v.check(value, key))
				}
				for _, at := range []int{0, size / 2, size - 1} {
					if size == 0 {
						break
					}
					value[at] ^= 1
					if !errors.Is(v.check(value, key), ErrWrongValue) {
						t.Errorf("%s: byte %d of %d changed, not found", name, at, size)
					}
					value[at] ^= 1
				}
				if size > 0 && v.check(value[:size-1], key) == nil || v.check(append(slices.Clone(value), 0),
					key) == nil {
					t.Errorf("%s: another size than %d, not found", name, size)
				}
				other := newValues(v.sizes, content, 6)
				if content.lines == nil && (v.check(value, key+1) == nil || other.check(value, key) == nil) {
					t.Errorf("%s: value of another key or seed, not found", name)
				}
			}
		}
	}
}

func TestCompressibleShare(t *testing.T) {
	for _, percent := range []float64{0, 25, 50, 90, 100} {
		c, err := ParseContent(fmt.Sprintf("compressible:%v%%", percent), nil)
		if err != nil {
			t.Fatal(err)
		}
		v, zeros := newValues(FixedSize(10_000), c, 1), 0
		for _, b := range v.append(nil, 3, 10_000) {
			if b == 0 {
				zeros++
			}
		}
		if share := float64(zeros) / 100; share < percent-2 || share > percent+2 {
			t.Errorf("%v %%: %v %% zeros", percent, share)
		}
	}
	for _, text := range []string{
		"", "randomly", "compressible", "compressible:101%", "compressible:-1",
		"compressible:NaN", "zero:1", "file:/no/such",
	} {
		if _, err := ParseContent(text, os.ReadFile); !errors.Is(err, ErrUsage) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCheckOfReplies(t *testing.T) {
	w := verified(t, "GET k:{key}", "MGET k:{key:2}", "SET k:{key} {value}")
	s := w.Stream(1, 0, 1)
	bulk := func(key uint64) string {
		return string(resp.AppendValue(nil, resp.Value{Kind: resp.BulkString, Str: w.values.append(nil, key, 20)}))
	}
	for _, tt := range []struct {
		op    uint16
		reply string
		ok    bool
	}{
		{0, bulk(99), true},
		{0, bulk(98), false},
		{0, "$-1\r\n", true},
		{0, "_\r\n", true},
		{0, "-ERR x\r\n", true},
		{0, "+OK\r\n", false},
		{0, ":1\r\n", false},
		{0, bulk(99)[:10], false},
		{0, bulk(99) + "x", false},
		{0, "$5\r\nab", false},
		{0, "$\r\n", false},
		{0, "$99999999999\r\n", false},
		{0, "x", false},
		{0, "", true},
		{1, "*2\r\n" + bulk(99) + bulk(0), true},
		{1, "*2\r\n" + bulk(99) + "$-1\r\n", true},
		{1, "*2\r\n_\r\n" + bulk(0), true},
		{1, "*2\r\n" + bulk(0) + bulk(99), false},
		{1, "*2\r\n" + bulk(99), false},
		{1, bulk(99), false},
		{1, "*-1\r\n", true},
		{1, "*x\r\n", false},
		{2, "+OK\r\n", true},
	} {
		err := s.Check(Request{Op: tt.op, Key: 99}, []byte(tt.reply))
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrWrongValue) {
			t.Errorf("op %d, %.20q: %v", tt.op, tt.reply, err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	w := verified(f, "GET k:{key}", "MGET k:{key:2}")
	good := resp.AppendValue(nil, resp.Value{Kind: resp.BulkString, Str: w.values.append(nil, 7, 20)})
	f.Add(uint16(0), good)
	f.Add(uint16(1), []byte("*2\r\n$-1\r\n_\r\n"))
	f.Fuzz(func(t *testing.T, op uint16, reply []byte) {
		err := w.Stream(1, 0, 1).Check(Request{Op: op % 2, Key: 7}, reply)
		v, readErr := resp.NewReader(strings.NewReader(string(reply)), resp.Limits{}).Read()
		if err == nil && op%2 == 0 && readErr == nil && v.Kind == resp.BulkString && w.values.check(v.Str, 7) != nil {
			t.Fatalf("%q passes", reply)
		}
	})
}
