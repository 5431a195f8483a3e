package host

// unixPeers finds the sockets that are the other ends of the server's connections over Unix sockets, in every network
// namespace of this host: the server's end of a connection is in that of its client. Such a client has no address. It
// is told apart by the descriptor of the server's end, which CLIENT LIST has, too.
func (w *watch) unixPeers(found func(inode uint64, address string) (more bool)) {
	if w.noUnix {
		return
	}
	own := map[uint64]string{} // descriptors of the server, by inode
	err := eachSocketByFD(w.FS, w.Process.PID, func(fd string, inode uint64) bool {
		own[inode] = fd
		return len(own) < maxSockets
	})
	spaces, spacesErr := netSpaces(w.FS)
	if err != nil || spacesErr != nil {
		return
	}
	paths := map[string]bool{} // at which it listens
	var connected []UnixSocket
	for _, space := range spaces {
		table, err := w.FS.Sockets(space.pid)
		if err != nil {
			continue
		}
		_ = table.VisitUnix(func(s UnixSocket) bool {
			switch _, its := own[s.Inode]; {
			case !its:
			case s.Listening:
				paths[s.Path] = true
			case s.Peer != 0:
				connected = append(connected, s)
			}
			return true
		})
		table.Close()
	}
	w.noUnix = len(paths) == 0
	for _, s := range connected {
		if paths[s.Path] && !found(s.Peer, s.Path+":"+own[s.Inode]) {
			return
		}
	}
}
