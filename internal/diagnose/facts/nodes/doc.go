// Package nodes has facts about nodes as others see them: cluster maps and who fetches them, redirects, refused
// calls, outages, restarts and failovers.
package nodes
