package workload

// dueDigits is the number of digits of a time in nanoseconds since the epoch, from 2001 to 2286.
const dueDigits = 19

// appendDue appends a time with all of its digits.
func appendDue(dst []byte, ns int64) []byte {
	at := len(dst)
	dst = append(dst, "0000000000000000000"...)
	for i := at + dueDigits - 1; i >= at && ns > 0; i-- {
		dst[i] = byte('0' + ns%10)
		ns /= 10
	}
	return dst
}

// DueOf reads the time that {due} put at the start of a message, with a colon after it.
func DueOf(message []byte) (ns int64, ok bool) {
	if len(message) <= dueDigits || message[dueDigits] != ':' {
		return 0, false
	}
	for _, c := range message[:dueDigits] {
		if c < '0' || c > '9' {
			return 0, false
		}
		ns = 10*ns + int64(c-'0')
	}
	return ns, ns > 0
}
