// Package caller has facts about who calls a node: processes, libraries and users, what their connections did, and
// who sent a command.
package caller
