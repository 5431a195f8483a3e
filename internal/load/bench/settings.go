//go:build linux

package bench

// SettingsOf are the settings that the result of a load with these options will have.
func SettingsOf(o Options) Settings {
	s := summary{Options: o, collector: newCollector(0, o.Load.TwoTimes(), workersOf(o.Load))}
	return s.settings()
}
