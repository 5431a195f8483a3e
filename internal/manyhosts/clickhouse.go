package manyhosts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ClickHouse is a database that OpenTelemetry Collectors fill.
type ClickHouse struct {
	connection driver.Conn
	database   string
	tenant     string // whose rows alone are asked; empty: all
}

// Bounds of a query.
const (
	queryTime   = time.Minute
	queryMemory = 4 << 30 // bytes of the server
)

// IsClickHouse reports whether a source is a ClickHouse database.
func IsClickHouse(source string) bool {
	scheme, _, ok := strings.Cut(source, "://")
	return ok && slices.Contains([]string{"clickhouse", "clickhouses", "clickhouse+http", "clickhouse+https"}, scheme)
}

// Login is who asks. The user is for an address that names none.
type Login struct{ User, Password string }

// ErrNoAnswer says that a database cannot be asked.
var ErrNoAnswer = errors.New("ClickHouse does not answer")

// OpenClickHouse connects to clickhouse://USER@HOST:9000/DATABASE (the native protocol; clickhouses:// with TLS) or
// clickhouse+http://HOST:8123/DATABASE (clickhouse+https:// with TLS). The password is not in the address.
func OpenClickHouse(ctx context.Context, source string, who Login) (*ClickHouse, error) {
	u, err := url.Parse(source)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%s: write clickhouse://USER@HOST:9000/DATABASE", source)
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("the address of ClickHouse has a password, which others see on the command line: give " +
			"it in CLICKHOUSE_PASSWORD")
	}
	secure := ""
	switch u.Scheme {
	case "clickhouses":
		u.Scheme, secure = "clickhouse", "true"
	case "clickhouse+http":
		u.Scheme = "http"
	case "clickhouse+https":
		u.Scheme, secure = "https", "true"
	}
	user := cmp.Or(u.User.Username(), who.User, "default")
	u.User = nil
	u.Path = cmp.Or(strings.TrimSuffix(u.Path, "/"), "/slowpath")
	if secure != "" {
		u.RawQuery = "secure=" + secure
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), map[string]string{
			"clickhouse": "9000", "clickhousetrue": "9440", "http": "8123", "httpstrue": "8443",
		}[u.Scheme+secure])
	}
	o, err := clickhouse.ParseDSN(u.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	o.Auth.Username, o.Auth.Password = user, who.Password
	o.DialTimeout, o.ReadTimeout = 10*time.Second, queryTime
	o.Settings = clickhouse.Settings{}
	database := o.Auth.Database
	c, err := clickhouse.Open(o)
	if err == nil {
		err = c.Ping(ctx)
	}
	var request *url.Error // which says the address once more
	if errors.As(err, &request) {
		err = request.Err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoAnswer, source, err)
	}
	return &ClickHouse{connection: c, database: database}, nil
}

// Query implements Source.
func (c *ClickHouse) Query(ctx context.Context, query string, f Filter) (out Rows, err error) {
	parameters := clickhouse.Parameters{}
	all := f.Parameters()
	for _, name := range used(query) {
		parameters[name] = fmt.Sprint(all[name])
	}
	settings := clickhouse.Settings{
		"max_execution_time": int(queryTime / time.Second), "max_memory_usage": queryMemory,
		"prefer_column_name_to_alias": 1, "readonly": 2, "distributed_product_mode": "global",
	}
	if c.tenant != "" {
		settings["additional_table_filters"] = ofTenant(c.tenant)
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithParameters(parameters), clickhouse.WithSettings(settings))
	rows, err := c.connection.Query(ctx, query)
	if err != nil {
		return out, err
	}
	defer rows.Close()
	out.Columns = rows.Columns()
	types := rows.ColumnTypes()
	for rows.Next() {
		into := make([]any, len(types))
		for i, t := range types {
			into[i] = reflect.New(t.ScanType()).Interface()
		}
		if err := rows.Scan(into...); err != nil {
			return out, err
		}
		row := make([]any, len(into))
		for i, v := range into {
			row[i] = plain(reflect.ValueOf(v).Elem())
		}
		out.Values = append(out.Values, row)
	}
	return out, rows.Err()
}

// OfTenant asks the rows of one tenant alone from now on. Its name has letters, digits, - and _.
func (c *ClickHouse) OfTenant(tenant string) { c.tenant = tenant }

// ofTenant has each table filtered before anything else reads it, also below views.
func ofTenant(tenant string) string {
	var filters []string
	for _, table := range append(slices.Clone(tables), "hour_row", "node_name_row") {
		for _, name := range []string{table, table + "_local"} {
			filters = append(filters, fmt.Sprintf(`'%s': 'tenant = \'%s\''`, name, tenant))
		}
	}
	return "{" + strings.Join(filters, ", ") + "}"
}

// plain is a value as int64, float64 or string; nil stays nil.
func plain(v reflect.Value) any {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return nil
	case v.Kind() == reflect.Pointer:
		return plain(v.Elem())
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return int64(v.Uint())
	case v.CanFloat():
		return v.Float()
	}
	return fmt.Sprint(v.Interface())
}

// ErrNoMinutes says that there is nothing to ask.
var ErrNoMinutes = errors.New("no minute of calls yet: agents send them to a collector by slowpath serve --otlp")

// Span implements Source: the last day of what there is, up to now: a clock that is ahead says nothing of the end.
func (c *ClickHouse) Span(ctx context.Context) (from, to time.Time, err error) {
	r, err := c.Query(ctx, "SELECT toUnixTimestamp(least(max(at), now())) * 1000000000 AS last FROM minute_row",
		Filter{})
	if err != nil {
		return from, to, err
	}
	if len(r.Values) == 0 || r.Int(r.Values[0], "last") == 0 {
		return from, to, fmt.Errorf("the database %s has %w", c.database, ErrNoMinutes)
	}
	to = time.Unix(0, r.Int(r.Values[0], "last")).Add(time.Minute)
	return to.Add(-24 * time.Hour), to, nil
}

// Exec runs a statement.
func (c *ClickHouse) Exec(ctx context.Context, statement string) error {
	return c.connection.Exec(ctx, statement)
}

// Close implements Source.
func (c *ClickHouse) Close() error { return c.connection.Close() }

//go:embed clickhouse/*.sql
var clickhouseFiles embed.FS

// migration is a numbered part of the schema. A new version of this program adds some, and changes none.
type migration struct{ name, sum, script string }

func migrations() (out []migration) {
	entries, err := fs.ReadDir(clickhouseFiles, "clickhouse")
	if err != nil {
		panic(err) // it is in the program
	}
	for _, e := range entries { // sorted
		script, err := clickhouseFiles.ReadFile("clickhouse/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(script)
		out = append(out, migration{strings.TrimSuffix(e.Name(), ".sql"), hex.EncodeToString(sum[:8]), string(script)})
	}
	return out
}

// ErrSchema says that the schema is not that of this program.
var ErrSchema = errors.New("slowpath fleet schema apply brings it up to date")

const schemaTable = `CREATE TABLE IF NOT EXISTS schema_version (name String, sum String, at DateTime DEFAULT now())
ENGINE = MergeTree ORDER BY name`

// applied are the parts of the schema that the database has, with their sums.
func (c *ClickHouse) applied(ctx context.Context) (map[string]string, error) {
	rows, err := c.connection.Query(ctx, "SELECT name, any(sum) FROM schema_version GROUP BY name")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]string{}
	for rows.Next() {
		var name, sum string
		if err := rows.Scan(&name, &sum); err != nil {
			return nil, err
		}
		out[name] = sum
	}
	return out, rows.Err()
}

// ApplySchema makes what is missing of the database and its tables, on all servers of a cluster where one is named, and
// tells of each part.
func ApplySchema(ctx context.Context, source string, who Login, cluster string, say func(string)) error {
	if !isName(cluster) {
		return fmt.Errorf("the name of a cluster has letters, digits and _: %s", cluster)
	}
	base, database, err := withoutDatabase(source)
	if err != nil {
		return err
	}
	c, err := OpenClickHouse(ctx, base, who)
	if err != nil {
		return err
	}
	create := "CREATE DATABASE IF NOT EXISTS " + database
	if cluster != "" {
		create += " ON CLUSTER '" + cluster + "'"
	}
	err = errors.Join(c.Exec(ctx, create), c.Close())
	if err != nil {
		return fmt.Errorf("making the database %s: %w", database, err)
	}
	if c, err = OpenClickHouse(ctx, source, who); err != nil {
		return err
	}
	defer c.Close()
	if err := c.Exec(ctx, schemaTable); err != nil {
		return err
	}
	have, err := c.applied(ctx)
	if err != nil {
		return err
	}
	for _, m := range migrations() {
		if sum, ok := have[m.name]; ok && sum != m.sum {
			return fmt.Errorf("%s of the database is not that of this slowpath: it is of another version", m.name)
		} else if ok {
			say(m.name + " is there")
			continue
		}
		for _, s := range statements(m.script) {
			for _, s := range onCluster(s, cluster) {
				if err := c.Exec(ctx, s); err != nil {
					first, _, _ := strings.Cut(s, "\n")
					return fmt.Errorf("%s: %s: %w", m.name, first, err)
				}
			}
		}
		done := fmt.Sprintf("INSERT INTO schema_version (name, sum) SELECT '%s', '%s'", m.name, m.sum)
		if err := c.Exec(ctx, done); err != nil {
			return err
		}
		say(m.name + " is applied")
	}
	return nil
}

// CheckSchema reports what is missing. Its errors match ErrSchema where the schema is not that of this program.
func (c *ClickHouse) CheckSchema(ctx context.Context) error {
	have, err := c.applied(ctx)
	if err != nil {
		return fmt.Errorf("%w: the database %s has no schema of slowpath (%v)", ErrSchema, c.database, err)
	}
	for _, m := range migrations() {
		if sum, ok := have[m.name]; !ok {
			return fmt.Errorf("%w: %s is missing", ErrSchema, m.name)
		} else if sum != m.sum {
			return fmt.Errorf("%w: %s is of another version", ErrSchema, m.name)
		}
	}
	return nil
}

// withoutDatabase is a source without its database, and that: letters, digits and _.
func withoutDatabase(source string) (base, database string, err error) {
	u, err := url.Parse(source)
	if err != nil {
		return "", "", err
	}
	database = cmp.Or(strings.Trim(u.Path, "/"), "slowpath")
	if !isName(database) {
		return "", "", fmt.Errorf("the name of a database has letters, digits and _: %s", database)
	}
	u.Path = "/default"
	return u.String(), database, nil
}

// isName reports whether a name needs no quotes.
func isName(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}
