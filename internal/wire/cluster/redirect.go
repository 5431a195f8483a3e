package cluster

import (
	"errors"
	"net"
	"strconv"
	"strings"

	"slowpath/internal/wire/resp"
)

// Redirect is a node's reply for a slot that it does not serve: MOVED for good, or ASK for this one call while the slot
// is being moved.
type Redirect struct {
	Ask  bool
	Slot uint16
	Host string // empty if the reply has none: then it is the host that replied
	Port int
}

// Addr returns host:port to dial, given the host that replied.
func (r Redirect) Addr(answered string) string {
	host := r.Host
	if host == "" {
		host = answered
	}
	return net.JoinHostPort(host, strconv.Itoa(r.Port))
}

// ParseRedirect finds the redirect in an error that is or wraps a [*resp.ServerError], such as MOVED 3999
// 127.0.0.1:6381; the address may be IPv6 without brackets.
func ParseRedirect(err error) (Redirect, bool) {
	var refusal *resp.ServerError
	if !errors.As(err, &refusal) || refusal.Code != "MOVED" && refusal.Code != "ASK" {
		return Redirect{}, false
	}
	slot, address, _ := strings.Cut(refusal.Message, " ")
	number, ok := parseSlot(slot)
	colon := strings.LastIndexByte(address, ':')
	if !ok || colon < 0 {
		return Redirect{}, false
	}
	port, ok := parsePort(address[colon+1:])
	if !ok || port == 0 {
		return Redirect{}, false
	}
	host := knownHost(strings.Trim(address[:colon], "[]"))
	return Redirect{Ask: refusal.Code == "ASK", Slot: number, Host: host, Port: port}, true
}
