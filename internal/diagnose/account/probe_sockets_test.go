package account

import (
	"testing"

	"slowpath/internal/recording"
)

func TestRetransmitsAreTheNetworks(t *testing.T) {
	r := base()
	slowCall(r, ms(1000), ms(1210))
	r.Event(recording.Event{
		TimeNs: ms(1210), Source: recording.SourceProbe, Subject: node, Kind: recording.KindTCPInfo,
		Detail: recording.Detail(recording.TCPDetail{CallStartNs: ms(1000), Conn: "kept", RetransDuring: 1}),
	})
	_, a := only(t, r)
	if a.In(Network, Retransmit) < ms(200) {
		t.Errorf("%+v", a.Segments)
	}
}

// A reply that the server retransmitted is in no counter of the probe's socket.
func TestServersRetransmissionsToTheProbe(t *testing.T) {
	r := tap{base()}
	for _, client := range []string{caller, "10.0.0.8:1"} {
		r.Event(recording.Event{
			TimeNs: ms(1001), DurationNs: ms(200), Source: recording.SourceTap, Subject: node,
			Kind:   recording.KindRetransmit,
			Detail: recording.Detail(recording.RetransmitDetail{Client: client, From: Server}),
		})
	}
	for i, local := range []string{caller, "10.0.0.9:1"} {
		from := ms(1000 + float64(i)*10)
		slowCall(r.Recording, from, ms(1210))
		r.Event(recording.Event{
			TimeNs: ms(1210), Source: recording.SourceProbe, Subject: node,
			Kind:   recording.KindTCPInfo,
			Detail: recording.Detail(recording.TCPDetail{CallStartNs: from, Conn: "kept", Local: local}),
		})
	}
	r.Index()
	l := Build(r.Recording)
	if len(l.Slow) != 2 || l.Slow[0].In(Network, Retransmit) != ms(200) || l.Slow[1].In(Network, Retransmit) != 0 {
		t.Errorf("%+v", l.Slow)
	}
}
