package metrics

// Count counts what is complete, as each second does.
func (m *Metrics) Count() { m.count() }
