package account

import "slowpath/internal/recording"

// probeSockets is what TCP reported of the probe's connections.
type probeSockets struct {
	infos map[int64]recording.TCPDetail // by the time at which the call was sent
	// calls of a connection during which its socket counted a retransmission, from send to reply
	counted map[probePath][]span
	index   map[probePath]*timeIndex
	// by this end of a connection: retransmissions that the tap saw, at either end
	seen map[string][]span
}

type span struct{ from, to int64 }

func readProbeSockets(rec *recording.Recording) *probeSockets {
	p := &probeSockets{
		map[int64]recording.TCPDetail{}, map[probePath][]span{}, map[probePath]*timeIndex{}, map[string][]span{},
	}
	for _, e := range rec.EventsOf(recording.SourceProbe, "", recording.KindTCPInfo) {
		d := recording.DetailOf[recording.TCPDetail](e)
		p.infos[d.CallStartNs] = d
		if d.RetransDuring > 0 {
			k := probePath{e.Subject, d.Conn}
			p.counted[k] = append(p.counted[k], span{d.CallStartNs, e.TimeNs})
		}
	}
	for k, spans := range p.counted {
		p.index[k] = newTimeIndex(len(spans), func(i int) (int64, int64) { return spans[i].from, spans[i].to })
	}
	for _, e := range rec.EventsOf(recording.SourceTap, "", recording.KindRetransmit) {
		if d := recording.DetailOf[recording.RetransmitDetail](e); !d.Spurious() {
			p.seen[d.Client] = append(p.seen[d.Client], span{e.TimeNs, e.TimeNs + e.DurationNs})
		}
	}
	return p
}

// info is what the socket of a call reported, of slow calls only.
func (p *probeSockets) info(c recording.Call) recording.TCPDetail { return p.infos[c.StartNs] }

// retransmitted are the times in which a call may have waited for a retransmission: during it, or during one before it
// on the same connection for which it waited.
func (p *probeSockets) retransmitted(c recording.Call) []span {
	if c.Conn == "fresh" { // no other calls on its connection
		if p.info(c).RetransDuring > 0 {
			return []span{{c.StartNs, c.EndNs}}
		}
		return nil
	}
	var out []span
	k := probePath{c.Node, c.Conn}
	for _, i := range p.index[k].touching(c.IntendedNs, c.EndNs) {
		out = append(out, p.counted[k][i])
	}
	// the probe's socket does not count what the server retransmitted
	return append(out, p.seen[p.info(c).Local]...)
}
