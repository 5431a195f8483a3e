package resp

// Limits are those of one reply. A field that is zero or negative stands for the value of [DefaultLimits].
type Limits struct {
	MaxBulkBytes  int64 // of one bulk string, verbatim string or blob error
	MaxReplyBytes int64 // of a whole reply: on the wire, and valueBytes for each value inside of it
	MaxElements   int64 // declared by all aggregates of a reply together; a map counts two for each pair
	MaxDepth      int   // of aggregates inside aggregates; a flat array has depth 1
	MaxLineBytes  int   // of one simple string, error, number or size, without its type byte and line end
}

// DefaultLimits is well above any reply that a diagnosis needs: the largest in practice is a CLIENT LIST of 10 000
// clients, 4 MB.
var DefaultLimits = Limits{
	MaxBulkBytes:  64 << 20,
	MaxReplyBytes: 256 << 20,
	MaxElements:   1 << 20,
	MaxDepth:      32,
	MaxLineBytes:  64 << 10,
}

// valueBytes is the size of a Value. Two bytes on the wire may become one.
const valueBytes = 96

// maxDepth is the upper limit of MaxDepth, since Read recurses.
const maxDepth = 1024

func (l Limits) withDefaults() Limits {
	if l.MaxBulkBytes <= 0 {
		l.MaxBulkBytes = DefaultLimits.MaxBulkBytes
	}
	if l.MaxReplyBytes <= 0 {
		l.MaxReplyBytes = DefaultLimits.MaxReplyBytes
	}
	if l.MaxElements <= 0 {
		l.MaxElements = DefaultLimits.MaxElements
	}
	if l.MaxDepth <= 0 {
		l.MaxDepth = DefaultLimits.MaxDepth
	}
	l.MaxDepth = min(l.MaxDepth, maxDepth)
	if l.MaxLineBytes <= 0 {
		l.MaxLineBytes = DefaultLimits.MaxLineBytes
	}
	return l
}
