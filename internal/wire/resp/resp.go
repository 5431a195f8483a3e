// Package resp reads and writes the wire protocol of Redis and Valkey, versions RESP2 and RESP3.
//
// What arrives is untrusted. A [Reader] bounds the depth, the number of elements and the bytes of each reply
// ([Limits]), grows its memory with the data that has arrived and never with a size that was only declared, and names a
// peer that is not a Redis at all ([ErrNotRedis]). [Reader.Read] builds a [Value]; [Reader.Skip] scans the same reply
// without building or allocating anything, for the path where only the time of a reply matters.
//
// The protocol is described in https://redis.io/docs/latest/develop/reference/protocol-spec/. Its streamed strings and
// aggregates (`$?`, `*?`) are sent by no released server, and are refused with [ErrProtocol].
package resp
