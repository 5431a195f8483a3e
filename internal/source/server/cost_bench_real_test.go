package server_test

import (
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/recording"
	"slowpath/internal/source/server"
)

// BenchmarkServerTime measures what a watch with the default cadence takes of the server's time, by the server's own
// commandstats, and compares it with the watch's own value: go test -bench ServerTime -benchtime 1x
// ./internal/source/server
func BenchmarkServerTime(b *testing.B) {
	const length = 10 * time.Second
	for _, load := range []struct {
		name    string
		clients int
		busy    bool
	}{{"idle", 0, false}, {"busy, 500 clients", 500, true}} {
		for _, bin := range binaries(b) {
			b.Run(load.name+"/"+string(bin.Name), func(b *testing.B) {
				r := start(b, bin)
				for range load.clients {
					r.client()
				}
				stop := make(chan struct{})
				defer close(stop)
				if load.busy {
					r.client().load(stop)
				}
				for b.Loop() {
					before := ownUsec(r)
					w := watch(b, r.target(), func(o *server.Options) { o.Every, o.Budget = 0, 0 })
					await.Pass(length)
					rec := w.end()
					own := series(rec, "self.commands_usec").Growth()
					b.ReportMetric((ownUsec(r)-before)/float64(length.Microseconds())*100, "%ofserver")
					b.ReportMetric(own/float64(length.Microseconds())*100, "%by-watch")
					b.ReportMetric(series(rec, "total_commands_processed").Growth()/length.Seconds(), "commands/s")
					b.ReportMetric(float64(len(rec.EventsOf(recording.SourceServer, node, recording.KindPoll))),
						"polls")
				}
			})
		}
	}
}

// load sends pipelines of 50 commands until the end.
func (c *client) load(stop chan struct{}) {
	batch := []byte(strings.Repeat("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", 25))
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := c.c.Write(batch); err != nil {
				return
			}
			for range 50 {
				if _, err := c.r.Read(); err != nil {
					return
				}
			}
		}
	}()
}

// ownUsec is the server time of all commands that a watch may send, by commandstats.
func ownUsec(r *running) float64 {
	var sum float64
	for line := range strings.Lines(r.client().do("INFO", "commandstats").Text()) {
		name, rest, _ := strings.Cut(line, ":")
		command, _, _ := strings.Cut(strings.TrimPrefix(name, "cmdstat_"), "|")
		switch command {
		case "info", "slowlog", "latency", "config", "client", "memory", "cluster":
			sum += number(rest, "usec=")
		}
	}
	return sum
}

func number(parts, key string) float64 {
	_, after, _ := strings.Cut(parts, key)
	var n float64
	for _, c := range after {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + float64(c-'0')
	}
	return n
}
