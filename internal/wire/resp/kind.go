package resp

// Kind is the type of a value. A RESP2 null bulk string and a RESP2 null array are both [Null], as in RESP3.
type Kind uint8

// The kinds of values. The zero Kind is no value.
const (
	SimpleString Kind = iota + 1
	Error
	Integer
	BulkString
	Array
	Null
	Double
	Bool
	BigNumber
	BlobError
	Verbatim
	Map
	Set
	Push
	Attribute // only on the wire: a Reader attaches it to the value it precedes, as Value.Attr
)

// kinds has the first byte of each kind on the wire, and its name in messages.
var kinds = [...]struct {
	first byte
	name  string
}{
	SimpleString: {'+', "simple string"},
	Error:        {'-', "error"},
	Integer:      {':', "integer"},
	BulkString:   {'$', "bulk string"},
	Array:        {'*', "array"},
	Null:         {'_', "null"},
	Double:       {',', "double"},
	Bool:         {'#', "boolean"},
	BigNumber:    {'(', "big number"},
	BlobError:    {'!', "blob error"},
	Verbatim:     {'=', "verbatim string"},
	Map:          {'%', "map"},
	Set:          {'~', "set"},
	Push:         {'>', "push"},
	Attribute:    {'|', "attribute"},
}

// kindOf finds the kind of a first byte; 0 where the byte begins no value.
var kindOf = func() (table [256]Kind) {
	for kind := SimpleString; kind <= Attribute; kind++ {
		table[kinds[kind].first] = kind
	}
	return table
}()

// String returns the name of the kind as the protocol's description has it.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kinds) {
		return "no value"
	}
	return kinds[k].name
}

// IsError reports whether values of this kind are error replies.
func (k Kind) IsError() bool { return k == Error || k == BlobError }

// isAggregate reports whether a value of this kind holds elements.
func (k Kind) isAggregate() bool {
	return k == Array || k == Map || k == Set || k == Push || k == Attribute
}

// isPaired reports whether the elements are keys and values in turn, and the declared size counts pairs.
func (k Kind) isPaired() bool { return k == Map || k == Attribute }

// isBlob reports whether a declared number of bytes follows the header.
func (k Kind) isBlob() bool { return k == BulkString || k == BlobError || k == Verbatim }
