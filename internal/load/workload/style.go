package workload

// style is how the numbers of keys are written: as plain digits, or with the first digits as hash tag.
type style struct {
	tagged   bool
	tagPairs int // pairs of digits in the tag
}

// styleFor is the style of a workload whose requests have at most so many key arguments, and so many keys. A request's
// keys have a tag in common, so that there are as many of them as the digits outside of the tag allow.
func styleFor(arguments, drawn int) style {
	s := style{tagged: arguments > 1, tagPairs: keyDigits/2 - 1}
	if drawn > 100 {
		s.tagPairs = keyDigits/2 - 2
	}
	return s
}

// group is how many keys share a hash tag.
func (s style) group() uint64 {
	if s.tagPairs == keyDigits/2-1 {
		return 100
	}
	return maxKeysPerRequest
}

// neighbour is the key after one in the group of those that share a hash tag, of which the last is followed by the
// first.
func (s style) neighbour(keys Keys, key uint64) uint64 {
	size := s.group()
	low := max(key/size*size, keys.Low)
	high := min(key/size*size+size-1, keys.High)
	if key >= high {
		return low
	}
	return key + 1
}

// numberLen is the number of bytes that appendNumber appends.
func (s style) numberLen(kind partKind, isKey bool) int {
	switch {
	case kind == tagPart && s.tagged:
		return 2*s.tagPairs + 2
	case kind == tagPart || isKey && s.tagged:
		return keyDigits + 2
	}
	return keyDigits
}

// appendNumber appends the number of a key in a key argument (isKey) or in another, where it is plain.
func (s style) appendNumber(dst []byte, n uint64, kind partKind, isKey bool) []byte {
	var digits [keyDigits]byte
	p := pairsOf(n)
	p.putAll(digits[:])
	tag := 2 * s.tagPairs
	switch {
	case kind == tagPart && s.tagged:
		return append(append(append(dst, '{'), digits[:tag]...), '}')
	case kind == tagPart:
		return append(append(append(dst, '{'), digits[:]...), '}')
	case isKey && s.tagged:
		return append(append(append(append(dst, '{'), digits[:tag]...), '}'), digits[tag:]...)
	}
	return append(dst, digits[:]...)
}

// put overwrites a number that appendNumber wrote.
func (s style) put(dst []byte, p *pairs, kind partKind) {
	switch {
	case kind == tagPart && s.tagged:
		p.put(dst[1:], 0, s.tagPairs)
	case kind == tagPart:
		p.putAll(dst[1:])
	case s.tagged && dst[0] == '{':
		p.put(dst[1:], 0, s.tagPairs)
		p.put(dst[2+2*s.tagPairs:], s.tagPairs, keyDigits/2)
	default:
		p.putAll(dst)
	}
}
