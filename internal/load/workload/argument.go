package workload

// append appends an argument of variable length, marked by the compiler, with its length before it. It gives where the
// argument itself begins, and its last key.
func (a argument) append(dst []byte, s *Stream, key uint64) (out []byte, start int, last uint64) {
	length := a.draw(s, key)
	dst = appendLength(dst, length)
	start = len(dst)
	for i := range a {
		p := &a[i]
		switch p.kind {
		case literalPart:
			dst = append(dst, p.text...)
		case randPart, uniquePart:
			dst = appendDecimal(dst, s.drawn[i])
		case duePart:
			dst = appendDue(dst, s.Due)
		case valuePart:
			dst = s.w.values.append(dst, s.valueKeys[i], int(s.drawn[i]))
		default:
			if p.times > 0 {
				key = s.w.neighbour(key)
			}
			dst = s.w.style.appendNumber(dst, key, p.kind, p.low > 0)
		}
	}
	return append(dst, '\r', '\n'), start, key
}

// draw draws the content of the argument, and gives its length.
func (a argument) draw(s *Stream, key uint64) (length int) {
	for i := range a {
		p := &a[i]
		switch p.kind {
		case literalPart:
			length += len(p.text)
		case randPart:
			s.drawn[i] = p.low + s.rng.below(p.high-p.low+1)
			length += decimalLen(s.drawn[i])
		case uniquePart:
			s.drawn[i] = s.unique
			s.unique += s.step
			length += decimalLen(s.drawn[i])
		case duePart:
			length += dueDigits
		case valuePart:
			s.valueKeys[i] = key
			if !s.keyed {
				s.valueKeys[i] = s.rng.next()
			}
			s.drawn[i] = uint64(s.w.values.size(&s.rng, s.valueKeys[i]))
			length += int(s.drawn[i])
		default:
			if p.times > 0 {
				key = s.w.neighbour(key)
			}
			length += s.w.style.numberLen(p.kind, p.low > 0)
		}
	}
	return length
}

// bytes is about how long the argument is, where values have this size.
func (a argument) bytes(value float64) (sum float64) {
	for _, p := range a {
		switch p.kind {
		case literalPart:
			sum += float64(len(p.text))
		case valuePart:
			sum += value
		default:
			sum += keyDigits
		}
	}
	return sum
}
