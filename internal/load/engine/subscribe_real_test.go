package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/load/workload"
)

func publishing(t *testing.T) *workload.Workload {
	t.Helper()
	w, err := workload.Compile(workload.Options{
		Commands: []string{"publish"}, Sizes: workload.FixedSize(100),
		Keys: workload.Keys{High: 9},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestSubscribers: each of them gets each message, also the last.
func TestSubscribers(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, name := range fleettest.Among(servers.Redis506, servers.Valkey811) {
		for _, protocol := range []int{2, 3} {
			if name == servers.Redis506 && protocol == 3 {
				continue
			}
			i := start(t, name, fleet.Spec{Config: []string{"client-output-buffer-limit pubsub 0 0 0"}})
			for how, change := range map[string]func(*Options){
				"event loop": func(o *Options) { o.Pipeline = 8 },
				"pool":       func(o *Options) { o.Pool, o.Workers, o.Pipeline = 2, 4, 1 },
			} {
				o := options(t, to(i))
				o.Target.Protocol, o.Workload, o.Subscribers = protocol, publishing(t), 3
				change(&o)
				total, r := sum(t, t.Context(), o)
				clean(t, total, r, o.Requests)
				if d := total.Delivery; d == nil || d.TotalCount() != total.Delivered || d.Min() <= 0 {
					t.Errorf("%s, RESP%d, %s: the times of messages are %v, of %d", name, protocol, how, d,
						total.Delivered)
				}
				if want := o.Requests * int64(o.Subscribers); total.Delivered != want ||
					total.DeliveredBytes < want*100 {
					t.Errorf("%s, RESP%d, %s: %d messages of %d bytes, want %d", name, protocol, how, total.Delivered,
						total.DeliveredBytes, want)
				}
			}
		}
	}
}

func delivered(t *Tally) int64 { return t.Delivered }

// TestDeliveryOfAPausedServer: what a pause of the server costs messages is in their times.
func TestDeliveryOfAPausedServer(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	i := start(t, servers.Redis7015, fleet.Spec{})
	o := options(t, to(i))
	o.Requests, o.Workload, o.Subscribers = 0, publishing(t), 2
	l := begin(t, o)
	const stopped = 300 * time.Millisecond
	l.until("messages", delivered, 0)
	if _, err := i.Do(t.Context(), "CLIENT", "PAUSE", fmt.Sprint(stopped.Milliseconds())); err != nil {
		t.Error(err)
	}
	l.until("messages that were late", func(t *Tally) int64 { return t.Delivery.Max() }, int64(stopped*9/10))
	l.end()
}

func TestSubscribersOfNothing(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	o := options(t, to(start(t, servers.Redis7015, fleet.Spec{})))
	o.Subscribers = 1
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
}

// TestSubscribersComeBack: after the server was killed they subscribe again.
func TestSubscribersComeBack(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	i := start(t, servers.Redis7015, fleet.Spec{})
	o := options(t, to(i))
	o.Requests, o.Workload, o.Subscribers = 0, publishing(t), 2
	l := begin(t, o)
	l.until("messages", delivered, 0)
	if err := i.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	l.until("refusals", func(t *Tally) int64 { return t.ConnErrors[kindRefused] }, 0)
	before := l.read(delivered)
	if err := i.Restart(t.Context()); err != nil {
		t.Error(err)
	}
	l.until("messages go on", delivered, before)
	l.end()
}
