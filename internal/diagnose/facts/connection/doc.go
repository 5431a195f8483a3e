// Package connection has facts about how connections come and go: dials, handshakes, pools, idle times, and requests
// that had no reply.
package connection
