package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"slowpath/internal/agent/web"
	"slowpath/internal/house/needs"
	"slowpath/internal/manyhosts"
	"slowpath/internal/report/browsertest"
)

// TestFleetInBrowser opens each page of many hosts in Chromium: it fits the screen, and asks nothing of others.
func TestFleetInBrowser(t *testing.T) {
	needs.Real(t, needs.Chromium)
	folder := ofMany(t, "shop", "slow-command", "server-cfs-throttled", "hot-shard-or-hot-key", "client-gc-pause")
	from, _, err := folder.Span(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := showFleet(t, web.FleetOptions{
		Source: "recordings/", Open: opener(map[string]manyhosts.Source{"": folder}),
	})
	ctx := browsertest.New(t)
	for name, path := range map[string]string{
		"fleet": "/", "fleet-calls": "/ask/calls", "fleet-why": "/ask/why",
		"fleet-incident": "/incident?host=slow-command&id=20261120T030000Z-1",
		"fleet-compare":  "/compare?at=" + from.Add(10*time.Minute).UTC().Format(time.RFC3339),
	} {
		t.Run(name, func(t *testing.T) {
			p := browsertest.Open(t, ctx, s.url+path)
			for _, theme := range []string{"light", "dark"} {
				for _, width := range []int64{390, 1440} {
					p.Show(width, "screen", theme)
					p.Check(fmt.Sprintf("%s, %s, %d px", name, theme, width))
					p.Picture(*screenshots, fmt.Sprintf("%s-%s-%d", name, theme, width), true)
				}
			}
			p.QuietBut(func(address string) bool { return strings.HasPrefix(address, s.url+"/") })
		})
	}
}
