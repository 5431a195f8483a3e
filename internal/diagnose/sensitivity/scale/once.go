package scale

// made are results that do not depend on the bound that is scaled, by what they are made of, and which bounds making
// them read.
var made = map[any]result{}

type result struct {
	value any
	read  []bool
}

// Once returns what make made of a key while no bound was scaled, unless making it reads the bound that is scaled now.
// What a result computes later, when it is asked, is not known: if it may read bounds, from is the first one that it
// cannot read, and results are kept for those from there on only.
func Once[V any](from int, key any, make func() V) V {
	if r, ok := made[key]; ok && which >= from && !r.read[which] {
		note(r.read)
		return r.value.(V)
	}
	before := read
	read = unread(len(before))
	v := make()
	if which < 0 {
		made[key] = result{v, read}
	}
	note(before)
	return v
}

func unread(n int) []bool { return make([]bool, n) }

// note adds bounds to those that have been read.
func note(more []bool) {
	for i, r := range more {
		read[i] = read[i] || r
	}
}
