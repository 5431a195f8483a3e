package web

import "time"

// Check says whether an address may be served with these options, as New does, without a store: the error names the
// flags that are missing.
func Check(o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	_, err := newAccess(o, &limitedLog{now: o.Now})
	return err
}
