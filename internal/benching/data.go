//go:build linux

package benching

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"slowpath/internal/cli"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/engine"
	"slowpath/internal/report/layout"
	"slowpath/internal/source"
	"slowpath/internal/wire/target"
)

// cleanUpTime bounds the removal of a load's keys.
const cleanUpTime = 2 * time.Minute

// openData connects for the load's keys, asks whether a server with keys of others may be loaded, and writes what is to
// be there before.
func (b *benching) openData(ctx context.Context, g source.Greeting) (*bench.Data, error) {
	master, err := b.master(ctx)
	if err != nil {
		return nil, err
	}
	d, err := bench.OpenData(ctx, master, g.Identity.ClusterEnabled, b.work())
	if err != nil {
		return nil, err
	}
	if err := b.prepare(ctx, d, g); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (b *benching) prepare(ctx context.Context, d *bench.Data, g source.Greeting) error {
	if b.asks(g.Remote) {
		if err := b.allowed(ctx, d); err != nil {
			return err
		}
	}
	if err := b.checkScripts(ctx, d); err != nil {
		return err
	}
	if !b.leavesNothing(d) {
		b.app.MayLeave("ended at once; keys of the load remain: " + b.removeByHand())
	}
	if err := d.Setup(ctx); err != nil {
		return err
	}
	if !b.flags.Prefill {
		return nil
	}
	_, err := d.Prefill(ctx, b.options.Load.Workload, b.options.Load.Seed, func(written, of uint64) {
		b.app.Progress("prefill: %d of %d keys", written, of)
	})
	if err != nil {
		return errors.Join(err, b.cleanUp(ctx, d))
	}
	return nil
}

// checkScripts: what a script does cannot be told from its text, and it can remove every key. A server that holds keys
// gets scripts only with --dangerous; those of a log are left out otherwise, and the result says so.
func (b *benching) checkScripts(ctx context.Context, d *bench.Data) error {
	if b.flags.Work.Dangerous || !b.work().RunsScripts() {
		return nil
	}
	empty, err := d.Empty(ctx)
	switch log := b.options.Load.Replay; {
	case err != nil || empty:
		return err
	case log != nil:
		if err := log.LeaveOutScripts(); err != nil {
			return cli.Usagef("--replay %s: %w", b.flags.Replay.File, err)
		}
		return nil
	}
	return cli.Usagef("a script can change and remove every key, and %s holds keys or does not say that it holds "+
		"none: add --dangerous to run it there", layout.OneLine(b.options.Load.Target.Addr()))
}

// loopback reports whether the server is on this host, by the address that its name resolved to.
func loopback(t target.Target, remote string) bool {
	if t.Network == "unix" {
		return true
	}
	at, err := netip.ParseAddrPort(remote)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// allowed asks on the terminal, and elsewhere wants --yes.
func (b *benching) allowed(ctx context.Context, d *bench.Data) error {
	keys, err := d.ForeignKeys(ctx)
	if err != nil || keys == 0 {
		return err
	}
	why := b.whyAsk(keys)
	in, ok := b.app.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) || !b.app.OnTerminal() {
		return cli.Usagef("%s; add --yes to load it all the same", why)
	}
	b.app.ProgressDone()
	fmt.Fprintf(b.app.Stderr, "%s. Load it? [y/N] ", why)
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n') // no answer is no
		answered <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answered:
		if answer == "y" || answer == "yes" {
			return nil
		}
	case <-ctx.Done():
		fmt.Fprintln(b.app.Stderr)
	}
	return cli.Usagef("%s was not loaded", b.options.Load.Target.Addr())
}

// leave removes the load's keys and closes what they were written by. A new connection does it: the server may have
// been away meanwhile.
func (b *benching) leave(ctx context.Context, d *bench.Data) error {
	d.Close()
	if b.leavesNothing(d) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	b.app.Progress("removing the keys of the load")
	master, err := b.masterAfter(ctx, d)
	var again *bench.Data
	if err == nil {
		again, err = bench.OpenData(ctx, master, b.options.Target.Kind == "cluster", b.work())
	}
	if err != nil {
		return fmt.Errorf("clearing away: %w; the keys of the load remain: %s", err, b.removeByHand())
	}
	defer again.Close()
	return b.cleanUp(ctx, again)
}

// leavesNothing reports whether there are no keys to remove.
func (b *benching) leavesNothing(d *bench.Data) bool {
	return b.flags.Keep || !b.flags.Prefill && !d.WritesKeys()
}

// masterAfter is a master after the load: the node of a cluster that was named may have left it or died meanwhile, so
// that others are asked, too.
func (b *benching) masterAfter(ctx context.Context, d *bench.Data) (target.Target, error) {
	master, err := b.master(ctx)
	if err == nil || !b.options.Load.Cluster {
		return master, err
	}
	for _, addr := range d.Addrs() {
		o := b.options.Load
		o.Target = o.Target.WithAddr(addr)
		if masters, err := engine.Masters(ctx, o); err == nil {
			return masters[0], nil
		}
	}
	return master, err
}

// removeByHand is the command that removes the keys of loads, without the password.
func (b *benching) removeByHand() string {
	t := b.options.Load.Target
	cli, where := fmt.Sprintf("redis-cli -h %s -p %d", t.Host, t.Port), ""
	switch {
	case t.Network == "unix":
		cli = "redis-cli -s " + t.Path
	case t.Sentinel != "":
		cli, where = "redis-cli", " on the master"
	case b.options.Load.Cluster:
		where = " and so on each master"
	}
	if t.TLS != nil {
		cli += " --tls"
	}
	if t.DB != 0 {
		cli += fmt.Sprintf(" -n %d", t.DB)
	}
	return fmt.Sprintf("%[1]s --scan --pattern 'slowpath:*' | xargs %[1]s unlink%[2]s", cli, where)
}

// cleanUp removes the keys that the load has written, after Ctrl-C too.
func (b *benching) cleanUp(ctx context.Context, d *bench.Data) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	b.app.Progress("removing the keys of the load")
	_, err := d.Clean(ctx)
	b.app.ProgressDone()
	if err == nil {
		b.app.MayLeave("")
		return nil
	}
	return fmt.Errorf("%w; to remove them: %s", err, b.removeByHand())
}
