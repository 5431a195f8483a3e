package live

import "slowpath/internal/recording"

// CallerOf names the caller of a call as Callers does: the program of this host, or the host's address.
func (v *View) CallerOf(c recording.Call) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.callerOf(c.Conn, c.Client)
}
