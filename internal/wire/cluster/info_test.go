package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/wire/resp"
)

const infoText = "cluster_state:fail\r\ncluster_slots_assigned:106\r\ncluster_slots_ok:105\r\n" +
	"cluster_slots_pfail:1\r\ncluster_slots_fail:2\r\n" +
	"cluster_known_nodes:3\r\ncluster_size:1\r\ncluster_current_epoch:8\r\ncluster_my_epoch:7\r\n" +
	"cluster_stats_messages_ping_sent:2\r\n" +
	"cluster_stats_messages_sent:70\r\ncluster_stats_messages_received:71\r\n" +
	"total_cluster_links_buffer_limit_exceeded:4\r\n\r\n"

func TestParseInfo(t *testing.T) {
	got, err := ParseInfo(infoText)
	want := Info{
		State: "fail", SlotsAssigned: 106, SlotsOK: 105, SlotsPFail: 1, SlotsFail: 2, KnownNodes: 3, Size: 1,
		CurrentEpoch: 8, MyEpoch: 7,
		MessagesSent: 70, MessagesReceived: 71, LinksBufferLimitExceeded: 4,
	}
	if err != nil || got != want || got.State == "ok" {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got, err = ParseInfo("cluster_state:ok\ncluster_new:text\n"); err != nil || got.State != "ok" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestParseInfoMalformed(t *testing.T) {
	for _, text := range []string{
		"", "cluster_state\r\n", "cluster_state:\r\n", "cluster_size:1\r\n",
		"cluster_state:ok\r\ncluster_size:x\r\n",
		"cluster_state:ok\r\ncluster_my_epoch:-1\r\n", "cluster_state:ok\r\ncluster_current_epoch:-1\r\n",
	} {
		if _, err := ParseInfo(text); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := ParseInfo(strings.Repeat("\n", maxLineBytes+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a text too long: %v", err)
	}
}

func TestParseRedirect(t *testing.T) {
	for text, want := range map[string]Redirect{
		"MOVED 3999 127.0.0.1:6381":    {Slot: 3999, Host: "127.0.0.1", Port: 6381},
		"ASK 3999 127.0.0.1:6381":      {Ask: true, Slot: 3999, Host: "127.0.0.1", Port: 6381},
		"MOVED 16383 2001:db8::1:6381": {Slot: 16383, Host: "2001:db8::1", Port: 6381},
		"MOVED 0 [2001:db8::1]:6381":   {Slot: 0, Host: "2001:db8::1", Port: 6381},
		"MOVED 1 host-1.example:6381":  {Slot: 1, Host: "host-1.example", Port: 6381},
		"MOVED 1 :6381":                {Slot: 1, Port: 6381},
		"MOVED 1 ?:6381":               {Slot: 1, Port: 6381},
	} {
		err := fmt.Errorf("GET: %w", resp.Value{Kind: resp.Error, Str: []byte(text)}.Err())
		if got, ok := ParseRedirect(err); !ok || got != want {
			t.Errorf("%q: got %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"ERR MOVED 1 a:1", "MOVED", "MOVED x a:1", "MOVED 16384 a:1", "MOVED 1 a",
		"MOVED 1 a:0", "MOVED 1 a:x", "moved 1 a:1",
	} {
		if got, ok := ParseRedirect(resp.Value{Kind: resp.Error, Str: []byte(text)}.Err()); ok {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
	if _, ok := ParseRedirect(nil); ok {
		t.Error("no error is a redirect")
	}
	if a, b := (Redirect{Host: "::1", Port: 1}).Addr("h"), (Redirect{Port: 1}).Addr("h"); a != "[::1]:1" || b != "h:1" {
		t.Errorf("addresses %q, %q", a, b)
	}
}
