package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"slowpath/internal/lab/fleet"
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
	for _, name := range []servers.Name{servers.Redis506, servers.Valkey811} {
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

// TestDeliveryOfAPausedServer: what a pause of the server costs messages is in their times.
func TestDeliveryOfAPausedServer(t *testing.T) {
	i := start(t, servers.Redis7015, fleet.Spec{})
	o := options(t, to(i))
	o.Requests, o.Workload, o.Subscribers = 0, publishing(t), 2
	w := newWatched(&o)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const stopped = 300 * time.Millisecond
	go func() {
		defer cancel()
		delivered := func() int64 { return w.read(func(t *Tally) int64 { return t.Delivered }) }
		await(t, func() bool { return delivered() > 0 })
		if _, err := i.Do(ctx, "CLIENT", "PAUSE", fmt.Sprint(stopped.Milliseconds())); err != nil {
			t.Error(err)
		}
		await(t, func() bool { return w.read(func(t *Tally) int64 { return t.Delivery.Max() }) >= int64(stopped*9/10) })
	}()
	if _, err := Run(ctx, o); err != nil {
		t.Fatal(err)
	}
}

// TestPayload finds the text of messages, and nothing in what is none.
func TestPayload(t *testing.T) {
	for message, want := range map[string]string{
		"*4\r\n$8\r\npmessage\r\n$1\r\np\r\n$1\r\nc\r\n$5\r\na\r\nbc\r\n": "a\r\nbc",
		">4\r\n$8\r\npmessage\r\n$1\r\np\r\n$1\r\nc\r\n$0\r\n\r\n":        "",
		"*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n":                                  "", "*4\r\n$9\r\npmessage": "",
		"+PONG\r\n": "", "": "",
	} {
		if got := payload([]byte(message)); string(got) != want {
			t.Errorf("%q: %q", message, got)
		}
	}
}

func TestSubscribersOfNothing(t *testing.T) {
	o := options(t, to(start(t, servers.Redis7015, fleet.Spec{})))
	o.Subscribers = 1
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
}

// TestSubscribersComeBack: after the server was killed they subscribe again.
func TestSubscribersComeBack(t *testing.T) {
	i := start(t, servers.Redis7015, fleet.Spec{})
	o := options(t, to(i))
	o.Requests, o.Workload, o.Subscribers = 0, publishing(t), 2
	w := newWatched(&o)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer cancel()
		delivered := func() int64 { return w.read(func(t *Tally) int64 { return t.Delivered }) }
		await(t, func() bool { return delivered() > 0 })
		if err := i.Kill(ctx); err != nil {
			t.Error(err)
		}
		refused := func(t *Tally) int64 { return t.ConnErrors[kindRefused] }
		await(t, func() bool { return w.read(refused) > 0 })
		before := delivered()
		if err := i.Restart(ctx); err != nil {
			t.Error(err)
		}
		await(t, func() bool { return delivered() > before })
	}()
	if _, err := Run(ctx, o); err != nil {
		t.Fatal(err)
	}
}
