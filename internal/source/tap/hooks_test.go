//go:build linux

package tap

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
)

// kernelWith is the type information of a kernel that has these places: tracepoints "tp_btf/name", functions "name",
// each with its number of arguments.
func kernelWith(t *testing.T, places map[string]int) *btf.Spec {
	t.Helper()
	word := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	var types []btf.Type
	for place, args := range places {
		name, isTracepoint := strings.CutPrefix(place, "tp_btf/")
		if isTracepoint {
			args++ // of void *data
		}
		proto := &btf.FuncProto{Return: word}
		for range args {
			proto.Params = append(proto.Params, btf.FuncParam{Name: "x", Type: word})
		}
		if isTracepoint {
			types = append(types, &btf.Typedef{Name: "btf_trace_" + name, Type: &btf.Pointer{Target: proto}})
		} else {
			types = append(types, &btf.Func{Name: name, Type: proto, Linkage: btf.GlobalFunc})
		}
	}
	b, err := btf.NewBuilder(types, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := b.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// TestHookChooser: of what a kernel has the best is taken, and what it lacks is said.
func TestHookChooser(t *testing.T) {
	always := map[string]int{
		"tp_btf/sched_waking": 1, "tp_btf/sched_process_exit": 1, "tp_btf/inet_sock_set_state": 3,
		"tp_btf/tcp_retransmit_skb": 2, "tp_btf/tcp_probe": 2,
		"tcp_sendmsg": 3, "sock_def_readable": 1,
	}
	with := func(more ...map[string]int) map[string]int {
		all := map[string]int{}
		for _, m := range append(more, always) {
			for k, v := range m {
				all[k] = v
			}
		}
		return all
	}
	linux517 := with(map[string]int{"tp_btf/sched_switch": 3, "tcp_recvmsg": 6})
	linux61 := with(map[string]int{"tp_btf/sched_switch": 4, "tcp_recvmsg": 5})
	linux63 := with(linux61, map[string]int{
		"tp_btf/sk_data_ready": 1, "tp_btf/sock_recv_length": 3,
		"tp_btf/sock_send_length": 3,
	})
	linux618 := with(linux63, map[string]int{"tp_btf/tcp_sendmsg_locked": 4})
	unknown := with(map[string]int{"tp_btf/sched_switch": 4, "tcp_recvmsg": 4})
	for name, c := range map[string]struct {
		places map[string]int
		fentry bool
		want   string
		blind  int
	}{
		"6.18": {linux618, false, "on_switch on_waking on_exit on_ready on_recv on_send on_state " +
			"on_sending on_retransmit on_ack", 0},
		"6.3": {linux63, true, "on_switch on_waking on_exit on_ready on_recv on_send on_state " +
			"on_sending_in on_retransmit on_ack", 0},
		"6.3, no fentry": {linux63, false, "on_switch on_waking on_exit on_ready on_recv on_send on_state " +
			"on_retransmit on_ack", 1},
		"6.1": {linux61, true, "on_switch on_waking on_exit on_ready_in on_recv_exit on_send_exit " +
			"on_state on_sending_in on_retransmit on_ack", 0},
		"5.17": {linux517, true, "on_switch3 on_waking on_exit on_ready_in on_recv_exit6 on_send_exit " +
			"on_state on_sending_in on_retransmit on_ack", 0},
		"6.1, no fentry":    {linux61, false, "", 0},
		"other tcp_recvmsg": {unknown, true, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			spec, err := loadKernel()
			if err != nil {
				t.Fatal(err)
			}
			hookable := func(string) error {
				if !c.fentry {
					return errors.New("no fentry")
				}
				return nil
			}
			got, late, blind, err := hookChooser{kernelWith(t, c.places), spec.Programs, hookable}.choose()
			if c.want == "" {
				if !errors.Is(err, ErrNoHook) {
					t.Errorf("no error that names the hook: %v", err)
				}
				return
			}
			got, want := append(got, late...), strings.Fields(c.want)
			slices.Sort(got)
			slices.Sort(want)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%v, %v", got, err)
			}
			if len(blind) != c.blind {
				t.Errorf("%d blind spots: %v", len(blind), blind)
			}
		})
	}
}
