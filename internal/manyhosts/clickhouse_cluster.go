package manyhosts

import (
	"fmt"
	"regexp"
	"strings"
)

// created is what a statement of the schema makes, by its first words.
var created = regexp.MustCompile(`^CREATE (TABLE|MATERIALIZED VIEW|VIEW) IF NOT EXISTS (\w+)`)

// keptIn is the engine of a table that keeps rows.
var keptIn = regexp.MustCompile(`ENGINE = (\w*MergeTree)(?:\(([^)]*)\))?`)

// onCluster is a statement of the schema for a cluster of ClickHouse: tables are replicated within a shard (by the
// macros {shard} and {replica} of each server), and NAME is the table over all shards of their NAME_local. Both ends of
// a call are in one shard, and what is of one host is. Without a cluster it is the statement.
func onCluster(statement, cluster string) (out []string) {
	m := created.FindStringSubmatch(statement)
	if cluster == "" || m == nil {
		return []string{statement}
	}
	kind, name := m[1], m[2]
	head := func(name string) string {
		return fmt.Sprintf("CREATE %s IF NOT EXISTS %s ON CLUSTER '%s'", kind, name, cluster)
	}
	rest := statement[len(m[0]):]
	engine := keptIn.FindStringSubmatch(rest)
	if kind != "TABLE" || engine == nil {
		if strings.Contains(rest, " REFRESH ") { // of its own shard
			local := strings.NewReplacer("_row AS\n", "_row_local AS\n", "_row m FINAL", "_row_local m FINAL",
				"_row n\n", "_row_local n\n", "_row h)", "_row_local h)")
			rest = local.Replace(rest)
		}
		return []string{head(name) + rest}
	}
	key := "cityHash64(host)"
	if name == "call_row" {
		key = "cityHash64(trace)"
	}
	arguments := "'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'"
	if engine[2] != "" {
		arguments += ", " + engine[2]
	}
	local := strings.Replace(rest, engine[0], fmt.Sprintf("ENGINE = Replicated%s(%s)", engine[1], arguments), 1)
	return []string{
		head(name+"_local") + local,
		fmt.Sprintf("%s AS %s_local ENGINE = Distributed('%s', currentDatabase(), %[2]s_local, %[4]s)", head(name),
			name, cluster, key),
	}
}
