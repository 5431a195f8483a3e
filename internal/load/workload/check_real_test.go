package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/resp"
)

// With one writer and one reader of a mix on a real server nothing is wrong; a value that somebody else changes is
// found, for each command that reads.
func TestVerifyOnServer(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	c := dial(t, start(t, servers.Redis7015))
	for _, tt := range []struct{ mix, spoil string }{
		{"GET k:{key}|SET k:{key} {value}", "SETRANGE slowpath:k:%012d 0 \x01\x01\x01\x01\x01\x01\x01\x01\x01"},
		{"MGET k:{key:5}|MSET k:{key:3} {value}|DEL k:{key}", "SET slowpath:k:{%.10s}%.2s theirs"},
		{"HGET h:{key} f:{rand:0-9}|HSET h:{key} f:{rand:0-9} {value}", "HSET slowpath:h:%012d f:0 x f:1 x f:2 x f:3 " +
			"x f:4 x f:5 x f:6 x f:7 x f:8 x f:9 x"},
		{"HMGET h:{key} f:1 f:2|HVALS h:{key}|HSET h:{key} f:{rand:0-9} {value}", "HSET slowpath:h:%012d f:1 theirs"},
		{"LRANGE l:{key} 0 -1|RPUSH l:{key} {value}|LPOP l:{key}", "LPUSH slowpath:l:%012d theirs"},
	} {
		t.Run(tt.mix, func(t *testing.T) {
			w := verified(t, strings.Split(tt.mix, "|")...)
			c.prefill(w)
			if wrong, checked := readAll(t, c, w, 1000); wrong != 0 || checked < 150 {
				t.Errorf("%d of %d replies are wrong", wrong, checked)
			}
			for key := range 300 {
				number := fmt.Sprintf("%012d", key)
				line := fmt.Sprintf(tt.spoil, key)
				if strings.Contains(tt.spoil, "%.10s") {
					line = fmt.Sprintf(tt.spoil, number, number[10:])
				}
				c.do(strings.Split(line, " ")...)
			}
			if wrong, checked := readAll(t, c, w, 300); wrong == 0 {
				t.Errorf("nothing is wrong in %d replies after others wrote", checked)
			}
			if _, err := w.CleanupByScan(context.Background(), c); err != nil {
				t.Error(err)
			}
		})
	}
}

// readAll plays n requests, and counts the replies that were checked and those that were wrong.
func readAll(t *testing.T, c *client, w *Workload, n int) (wrong, checked int) {
	t.Helper()
	s := w.Stream(3, 0, 1)
	for range n {
		b, r := s.Next(nil)
		v := c.send(b, 1)[0]
		if err := v.Err(); err != nil {
			t.Fatalf("%v of %q", err, b)
		}
		if !w.Ops[r.Op].Checked {
			continue
		}
		if v.IsNull() {
			continue
		}
		checked++
		if err := s.Check(r, appendRESP2(nil, v)); err != nil {
			if !errors.Is(err, ErrWrongValue) {
				t.Fatal(err)
			}
			wrong++
		}
	}
	return wrong, checked
}

// appendRESP2 appends a value as it came.
func appendRESP2(dst []byte, v resp.Value) []byte {
	if v.Kind != resp.Array {
		if v.IsNull() {
			return append(dst, "$-1\r\n"...)
		}
		return resp.AppendValue(dst, v)
	}
	dst = append(dst, fmt.Sprintf("*%d\r\n", len(v.Elems))...)
	for _, e := range v.Elems {
		dst = appendRESP2(dst, e)
	}
	return dst
}
