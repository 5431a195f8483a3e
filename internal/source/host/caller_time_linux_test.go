package host

import (
	"testing"

	"slowpath/internal/recording"
)

func TestSleepOf(t *testing.T) {
	for name, tt := range map[string]struct {
		call   string
		args   [4]uint64
		reason sleepReason
		fd     int
	}{
		"a reply, or another peer":    {"recvfrom", [4]uint64{7, 1, 2}, forOthers, 7},
		"a dial":                      {"connect", [4]uint64{7}, forDial, 7},
		"events":                      {"epoll_pwait", [4]uint64{4}, forEvents, 4},
		"one descriptor":              {"poll", [4]uint64{0x7f00, 1, 1000}, forOne, -1},
		"several":                     {"ppoll", [4]uint64{0x7f00, 3, 1000}, forEvents, -1},
		"a pause by poll":             {"poll", [4]uint64{0, 0, 1000}, forTimer, -1},
		"a pause by select":           {"select", [4]uint64{0, 0, 0, 0}, forTimer, -1},
		"descriptors, by select":      {"select", [4]uint64{9, 1}, forEvents, -1},
		"a pause":                     {"clock_nanosleep", [4]uint64{1, 0, 0x7f00}, forTimer, -1},
		"a lock":                      {"futex", [4]uint64{0x7f00, 128, 2, 0}, forLock, -1},
		"a lock, or a pause":          {"futex", [4]uint64{0x7f00, 137, 0, 0x7f10}, forLimit, -1},
		"a fault":                     {"page-fault", [4]uint64{}, forDisk, -1},
		"a child":                     {"wait4", [4]uint64{1<<64 - 1}, forOthers, -1},
		"a descriptor that cannot be": {"read", [4]uint64{1 << 40}, forOthers, -1},
	} {
		if reason, fd := sleepOf(tt.call, tt.args); reason != tt.reason || fd != tt.fd {
			t.Errorf("%s: got %d at %d, want %d at %d", name, reason, fd, tt.reason, tt.fd)
		}
	}
}

// aSample is a sample of a thread: times in milliseconds.
type aSample struct {
	at, ran, waited, arrivals int64
	reason                    sleepReason
}

func TestThreadTime(t *testing.T) {
	for name, tt := range map[string]struct {
		samples     []aSample
		ran, waited int64
		slept       map[sleepReason]int64
		unknown     int64
	}{
		"sleeps on": {
			samples: []aSample{{1, 0, 0, 1, forReply}, {101, 0, 0, 1, forReply}},
			slept:   map[sleepReason]int64{forReply: 100},
		},
		"calls, and pauses": {
			samples: []aSample{{1, 0, 0, 1, forReply}, {101, 10, 6, 3, forTimer}},
			ran:     10, waited: 6, slept: map[sleepReason]int64{forReply: 42, forTimer: 42},
		},
		"was awake at the second": {
			samples: []aSample{{1, 0, 0, 1, forReply}, {101, 10, 0, 2, awake}},
			ran:     10, slept: map[sleepReason]int64{forReply: 90},
		},
		"it is not known for what it slept": {
			samples: []aSample{{1, 0, 0, 1, awake}, {101, 10, 0, 2, awake}},
			ran:     10, unknown: 90,
		},
		"nor was it, and now it is": {
			samples: []aSample{{1, 0, 0, 1, awake}, {101, 10, 0, 2, awake}, {201, 20, 0, 3, forLock}},
			ran:     20, slept: map[sleepReason]int64{forLock: 180},
		},
		"runs without a pause, up to the last timer tick": {
			samples: []aSample{{1, 0, 0, 1, awake}, {101, 96, 0, 1, awake}},
			ran:     100,
		},
		"waits for a CPU, which the kernel counts when the wait ends": {
			samples: []aSample{
				{1, 0, 0, 1, awake}, {101, 0, 0, 1, awake}, {201, 0, 0, 1, awake}, {301, 20, 280, 2, awake},
			},
			ran: 20, waited: 280,
		},
		"in two system calls": {
			samples: []aSample{{1, 0, 0, 1, forOthers}, {101, 0, 0, 1, forOthers}, {201, 0, 0, 2, forLock}},
			slept:   map[sleepReason]int64{forOthers: 150, forLock: 50},
		},
		"was another thread before": {
			samples: []aSample{{1, 50, 0, 9, forReply}, {101, 0, 0, 1, forLock}, {201, 0, 0, 1, forLock}},
			slept:   map[sleepReason]int64{forLock: 100},
		},
	} {
		var of threadTime
		for _, s := range tt.samples {
			what := recording.WaitsFor{}
			if s.reason == forOthers {
				what.Call = "fsync"
			}
			of.sample(s.at*1e6, schedstat{s.ran * 1e6, s.waited * 1e6, s.arrivals}, s.reason, what)
		}
		if ns := tt.slept[forOthers] * 1e6; ns > 0 && (len(of.outside) != 1 || of.outside[0].Ns != ns) {
			t.Errorf("%s: %+v", name, of.outside)
		}
		if of.ran != tt.ran*1e6 || of.waited != tt.waited*1e6 || of.unknown != tt.unknown*1e6 {
			t.Errorf("%s: ran %d, waited %d, unknown %d", name, of.ran, of.waited, of.unknown)
		}
		for reason, ns := range of.slept {
			if want := tt.slept[sleepReason(reason)] * 1e6; ns != want {
				t.Errorf("%s: slept %d ns for %d, want %d", name, ns, reason, want)
			}
		}
	}
}

// TestTimeSumWaits: nothing is lost.
func TestTimeSumWaits(t *testing.T) {
	s := timeSum{threads: 2, ran: 5, waited: 7}
	for i := range s.slept {
		s.slept[i] = 100
	}
	s.slept[awake], s.slept[forOne] = 0, 0
	w := s.waits()
	if w.PeersNs != 100 || w.OthersNs != 100 || w.RedisNs != 100 ||
		w.DialNs != 100 || w.EventsNs != 100 || w.LimitNs != 100 || w.RunQueueNs != 7 ||
		w.BlockedNs != 100 || w.FrozenNs != 100 || w.RunningNs() != 5 || w.Ns != 12+100*int64(sleepReasons-2) {
		t.Errorf("%+v, running %d", w, w.RunningNs())
	}
}
