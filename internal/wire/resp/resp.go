// Package resp reads and writes the wire protocol of Redis and Valkey, versions RESP2 and RESP3.
//
// Replies are untrusted. A [Reader] limits the depth, the number of elements and the bytes of each reply ([Limits]),
// allocates memory for data that has arrived and never for a declared size, and recognizes a peer that is not a Redis
// ([ErrNotRedis]). [Reader.Read] builds a [Value]; [Reader.Skip] reads a reply without building or allocating anything,
// for callers that need only its time.
//
// The protocol is described in https://redis.io/docs/latest/develop/reference/protocol-spec/. Its streamed strings and
// aggregates (`$?`, `*?`) are sent by no released server, and are refused with [ErrProtocol].
package resp
