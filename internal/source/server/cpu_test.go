package server

import (
	"testing"
	"time"

	"slowpath/internal/wire/resp"
)

func TestCPUOf(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       CPU
		ok         bool
	}{
		{
			"redis 7", "# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.25\r\nused_cpu_sys_children:9\r\n" +
				"used_cpu_sys_main_thread:1.25\r\nused_cpu_user_main_thread:2\r\n",
			CPU{Process: 3750 * time.Millisecond, Main: 3250 * time.Millisecond},
			true,
		},
		{"redis 5", "used_cpu_sys:1.5\r\nused_cpu_user:2.25\r\n", CPU{Process: 3750 * time.Millisecond}, true},
		{"none", "# CPU\r\n", CPU{}, false},
		{"out of range", "used_cpu_sys:1e300\r\nused_cpu_user:-5\r\n", CPU{Process: time.Duration(1e18)}, true},
	} {
		got, err := cpuOf(resp.Value{Kind: resp.BulkString, Str: []byte(c.text)})
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
	}
}
