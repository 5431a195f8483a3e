package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// maxLineBytes bounds a line of a log.
const maxLineBytes = 64 << 20

// loggedCommand is a line of MONITOR.
type loggedCommand struct {
	at       time.Duration // since the epoch
	database string        // number
	client   string        // address, or "lua"
	args     []string
}

// parseMonitor reads a line as MONITOR prints it (replicationFeedMonitors in Redis' replication.c):
// 1339518083.107412 [0 127.0.0.1:60866] "keys" "*"
func parseMonitor(line string) (loggedCommand, bool) {
	stamp, rest, ok := strings.Cut(line, " [")
	who, text, ok2 := strings.Cut(rest, `] "`)
	if !ok || !ok2 {
		return loggedCommand{}, false
	}
	var l loggedCommand
	if l.at, ok = parseStamp(stamp); !ok {
		return loggedCommand{}, false
	}
	if l.database, l.client, ok = strings.Cut(who, " "); !ok {
		return loggedCommand{}, false
	}
	if _, err := strconv.ParseUint(l.database, 10, 31); err != nil {
		return loggedCommand{}, false
	}
	for text = `"` + text; text != ""; {
		if text[0] != '"' {
			return loggedCommand{}, false
		}
		arg, n, ok := doubleQuoted(text)
		if !ok {
			return loggedCommand{}, false
		}
		l.args, text = append(l.args, string(arg)), text[n:]
		if text != "" {
			if text, ok = strings.CutPrefix(text, " "); !ok {
				return loggedCommand{}, false
			}
		}
	}
	return l, l.args[0] != ""
}

// parseStamp reads seconds since the epoch with six digits after the point.
func parseStamp(text string) (time.Duration, bool) {
	seconds, micros, ok := strings.Cut(text, ".")
	s, err1 := strconv.ParseUint(seconds, 10, 33) // until the year 2242
	us, err2 := strconv.ParseUint(micros, 10, 20)
	return time.Duration(s)*time.Second + time.Duration(us)*time.Microsecond, ok && err1 == nil && err2 == nil &&
		len(micros) == 6 && us < 1e6
}

// transaction is a transaction of a client before its EXEC.
type transaction struct {
	at      time.Duration
	encoded []byte
	split   bool // its keys are in several slots of a cluster
	scripts bool // it runs one
	Request
}

// monitorReader makes a replay of the lines of MONITOR.
type monitorReader struct {
	*Replay
	first          time.Duration
	begun          bool
	transactions   map[string]*transaction
	blockBytes     int64 // of all transactions
	otherDatabases int64 // requests of databases other than 0
}

// ReadMonitor reads the output of `redis-cli MONITOR`. Its keys get the prefix, those of a database other than 0 with
// "dbN:" after it. A transaction becomes one request. Commands that a script called are left out, since the script
// calls them again; so are commands that a load does not send, and those that block. The error is ErrUsage for a log
// that cannot be replayed.
func ReadMonitor(in io.Reader, o ReplayOptions) (*Replay, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	m := monitorReader{Replay: newReplay(o), transactions: map[string]*transaction{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLineBytes)
	for lines.Scan() {
		text := strings.TrimSuffix(lines.Text(), "\r")
		if text == "OK" || text == "" {
			continue
		}
		l, ok := parseMonitor(text)
		if !ok {
			m.skip("others", unreadable(text))
			continue
		}
		if err := m.line(l); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, usage("log of MONITOR: a line is longer than %d MB", maxLineBytes>>20)
	} else if err != nil {
		return nil, usage("log of MONITOR: %w", err)
	}
	for range m.transactions {
		m.skip("MULTI", "its EXEC is not in the log")
	}
	if m.otherDatabases > 0 && m.options.KeepKeys {
		m.Notes = append(m.Notes, fmt.Sprintf("commands of databases other than 0: %d; all are sent to that of the "+
			"connections", m.otherDatabases))
	} else if m.otherDatabases > 0 {
		m.Notes = append(m.Notes, fmt.Sprintf("commands of databases other than 0: %d; their keys have dbN: before "+
			"them", m.otherDatabases))
	}
	return m.finish("log of MONITOR")
}

// unreadable says why a line could not be read. valkey 8.1.0 and 8.1.1 escape neither quotes nor backslashes (valkey PR
// 2036, fixed in 8.1.2), so that arguments with quotes are ambiguous, and those with backslashes are changed.
func unreadable(line string) string {
	if strings.Contains(line, `] "`) {
		return "its quotes do not match, as in the MONITOR of valkey before 8.1.2, which does not escape them"
	}
	return "not a line of MONITOR"
}

// line adds a command of the log.
func (m *monitorReader) line(l loggedCommand) error {
	name := strings.ToUpper(l.args[0])
	open := m.transactions[l.client]
	switch {
	case l.client == "lua":
		m.skip(name, "called by a script, which calls it again")
		return nil
	case name == "MULTI":
		m.close(l.client)
		m.transactions[l.client] = &transaction{at: l.at, encoded: encode(nil, []string{"MULTI"}), Request: Request{
			Replies: 1,
			Slot:    -1, Key: -1,
		}}
		m.blockBytes += int64(len(m.transactions[l.client].encoded))
		return nil
	case name == "DISCARD":
		m.close(l.client)
		return nil
	case name == "WATCH" || name == "UNWATCH":
		m.skip(name, "the transaction that it watched for may be of another connection")
		return nil
	case name == "EXEC":
		return m.exec(l, open)
	case blocking[name]:
		m.skip(name, "it could block a connection for ever")
		return nil
	}
	database := ""
	if l.database != "0" {
		m.otherDatabases++
		database = "db" + l.database + ":"
	}
	args, slot, err := m.rewrite(l.args, database)
	if err != nil {
		why := "a load does not send it without --dangerous, or its keys cannot be told"
		switch {
		case errors.Is(err, ErrState):
			why = "it changes what the connection is"
		case errors.Is(err, errSlots):
			why = errSlots.Error()
		}
		m.skip(opName(l.args), why)
		return nil
	}
	if open == nil {
		m.markScript(runsScript(args))
		return m.put(opName(args), l.client, m.since(l.at), encode(nil, args), Request{Replies: 1, Slot: slot, Key: -1})
	}
	open.scripts = open.scripts || runsScript(args)
	return m.queue(open, args, slot)
}

// markScript notes that the next request to be put runs a script.
func (m *monitorReader) markScript(runs bool) {
	if runs {
		m.scripts = append(m.scripts, uint32(len(m.entries)))
	}
}

// close removes the transaction of a client.
func (m *monitorReader) close(client string) {
	if b := m.transactions[client]; b != nil {
		m.blockBytes -= int64(len(b.encoded))
		delete(m.transactions, client)
	}
}

// queue adds a command to a transaction.
func (m *monitorReader) queue(open *transaction, args []string, slot int16) error {
	const maxReplies = 60_000 // they are counted in 16 bits
	before := len(open.encoded)
	open.encoded = encode(open.encoded, args)
	m.blockBytes += int64(len(open.encoded) - before)
	if open.Replies == maxReplies || m.blockBytes > m.options.MaxBytes {
		return usage("log of MONITOR: a transaction of more than %d commands, or more than %d MB in all that are open",
			maxReplies, m.options.MaxBytes>>20)
	}
	open.Replies++
	open.split = open.split || m.options.Cluster && open.Slot >= 0 && slot >= 0 && slot != open.Slot
	if open.Slot < 0 {
		open.Slot = slot
	}
	return nil
}

func (m *monitorReader) exec(l loggedCommand, open *transaction) error {
	m.close(l.client)
	if open == nil {
		m.skip("EXEC", "its MULTI is not in the log")
		return nil
	}
	if open.split {
		m.skip("MULTI", errSlots.Error())
		return nil
	}
	open.Replies++
	m.markScript(open.scripts)
	return m.put("MULTI", l.client, m.since(open.at), encode(open.encoded, []string{"EXEC"}), open.Request)
}

// since is the time after the first request, not below 0 after a clock was set back.
func (m *monitorReader) since(at time.Duration) time.Duration {
	if !m.begun {
		m.first, m.begun = at, true
	}
	return max(at-m.first, 0)
}
