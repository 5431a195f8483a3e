//go:build linux

package tap

import (
	"strings"

	"slowpath/internal/recording"
)

// hearAcks looks at acknowledgements from now on: there is a client on another host.
func (t *Tap) hearAcks() { t.alsoHook(hookAck, "when clients on other hosts acknowledged a reply") }

// hearSends looks at when sends begin from now on: there is a client whose own end is parsed.
func (t *Tap) hearSends() {
	t.alsoHook(hookSending, "when a send began (calls of clients begin when it ended)")
}

func (t *Tap) alsoHook(hook, what string) {
	if err := t.kernel.attachLate(hook); err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		t.Sink.Event(recording.Event{TimeNs: t.Clock.Now(), Source: recording.SourceTap, Subject: t.Nodes[0].Address, Kind: recording.KindBlindSpot,
			Detail: recording.Detail(recording.BlindSpot{What: what, Why: reason, Enable: "run as root"})})
	}
}

// acknowledged books when the client of another host had a reply in its kernel.
func (b *book) acknowledged(e *kernelAckedEvent) {
	client, server := endsOf(&e.Addr)
	n, ok := b.node(server, e.Addr.Role, e.Tgid)
	if !ok || b.ends[client].pid == b.self {
		return
	}
	b.Sink.Event(recording.Event{TimeNs: b.time(e.From), DurationNs: int64(e.To - e.From), Source: recording.SourceTap, Subject: n.Address, Kind: recording.KindAcknowledged,
		Detail: recording.Detail(recording.AckDetail{Client: client.String(), Unacked: int64(e.Unacked), SureNs: int64(e.Sure), Resent: int64(e.Resent), Shut: e.Shut != 0,
			RTTMinNs: int64(e.RttMinUs) * 1000})})
}
