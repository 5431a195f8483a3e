package facts

// once is a fact that many causes ask for, and that is found once.
type once[T any] struct {
	known bool
	fact  T
}

// of is the fact, as find finds it the first time.
func (o *once[T]) of(find func() T) T {
	if !o.known {
		o.fact, o.known = find(), true
	}
	return o.fact
}
