// Package law shares out the time that callers lost. What was lost is fixed before a cause is asked (Lost); causes
// claim intervals of it (Claim); each interval is given once (Share): to the claim that is known best, among equals to
// the one further up the chain of consequences, and else in equal parts.
package law

import (
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// Column is where lost time passed: in slow calls a state of the account, outside of them a kind of loss.
type Column struct {
	Actor, State string
	Kind         facts.LossKind
}

// Lost is the time that callers lost in slow calls: how long each took above the baseline of its path. It is split into
// pieces, one for each segment of a call's account.
type Lost struct {
	c     *facts.Case
	calls [][]piece // by slow call; nil: not yet cut
}

// piece is a segment of a slow call with the part of its time that was lost, in nanoseconds.
type piece struct {
	Column
	fromNs, toNs int64
	ns           float64
}

// Of is the time that callers of a recording lost.
func Of(c *facts.Case) *Lost { return &Lost{c, make([][]piece, len(c.Ledger.Slow))} }

// Ns is all of it, in nanoseconds.
func (l *Lost) Ns() float64 { return float64(l.c.Ledger.ExcessNs) }

// call is what was lost in a slow call. A call that is not slow spends time on its way, with the server at work on it
// and with its reader, too: what it usually takes is no loss there. Nor is slowpath's own wait for a CPU.
func (l *Lost) call(i int) []piece {
	if l.calls[i] != nil {
		return l.calls[i]
	}
	a := &l.c.Ledger.Slow[i]
	out, ownDelay, all := []piece{}, a.OwnDelayNs, 0.0
	for _, s := range l.c.Ledger.Whole(i) {
		p := piece{Column{Actor: s.Actor, State: s.State}, s.FromNs, s.ToNs, float64(s.Ns())}
		if s.Actor == account.Client && s.State == account.RunQueue {
			own := min(s.Ns(), ownDelay)
			p.ns, ownDelay = p.ns-float64(own), ownDelay-own
		}
		out, all = append(out, p), all+p.ns
	}
	usual := max(all-float64(a.ExcessNs), 0)
	for _, of := range []func(piece) bool{piece.isUsual, func(piece) bool { return true }} {
		usual = less(out, usual, of)
	}
	l.calls[i] = out
	return out
}

// isUsual reports whether calls that are not slow spend time in such a state, too.
func (p piece) isUsual() bool {
	switch p.State {
	case account.Out, account.Back, account.Exec, account.Send, account.Receive, account.Unexplained,
		account.Dial, account.TLS, account.Handshake, recording.Forward:
		return true
	}
	return false
}

// less takes some nanoseconds from pieces of a kind, of each as large a part. It returns what is left to take.
func less(pieces []piece, ns float64, of func(piece) bool) float64 {
	all := 0.0
	for _, p := range pieces {
		if of(p) {
			all += p.ns
		}
	}
	taken := min(ns, all)
	for k := range pieces {
		if of(pieces[k]) {
			pieces[k].ns -= taken * pieces[k].ns / max(all, 1)
		}
	}
	return ns - taken
}

// in is what was lost between two times, in nanoseconds.
func (p piece) in(fromNs, toNs int64) float64 {
	return p.ns * float64(min(p.toNs, toNs)-max(p.fromNs, fromNs)) / float64(max(p.toNs-p.fromNs, 1))
}

// cuts are the times at which the pieces of a call, and what is claimed of them, begin and end.
func cuts(pieces []piece, claimed []part) []int64 {
	var out []int64
	for _, p := range pieces {
		out = append(out, p.fromNs, p.toNs)
	}
	for _, p := range claimed {
		out = append(out, p.fromNs, p.toNs)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
