# The service of the deb under a real systemd, with a real redis-server: what it may do, and that it sees what it should.
base full systemd systemd-sysv dbus redis-server rpm man-db iproute2 lintian
older
fresh full
cp "$out"/slowpath_*_"$arch".deb "$root/new.deb"
cp "$temporary/older/older.deb" "$root/old.deb"
# Debian's unit wants a user namespace, which this kernel may not have.
mkdir -p "$root/etc/systemd/system/redis-server.service.d"
printf '[Service]\nPrivateUsers=no\n' >"$root/etc/systemd/system/redis-server.service.d/test.conf"
boot
check 'redis-server runs' until_says active on_machine systemctl is-active redis-server

property() { on_machine systemctl show -p "$1" --value slowpath; }
fetch() { nsenter -t "$machine" -n curl -sS --max-time 5 "http://127.0.0.1:7380$1"; }
# status KEY: of the process of the service, as /proc has it.
status() { on_machine sh -c "sed -n 's/^$1:[[:space:]]*//p' /proc/$(property MainPID)/status"; }

check 'it installs' on_machine dpkg -i /old.deb
check 'the service is enabled' says enabled on_machine systemctl is-enabled slowpath
check 'the service runs' until_says 'active' property ActiveState
check 'it answers' until_says '"schema"' fetch /healthz
check 'it found the server' until_says 127.0.0.1:6379 fetch /healthz
check 'it runs as its user' says slowpath on_machine sh -c "stat -c %U /proc/$(property MainPID)"
# cap_dac_read_search, cap_sys_ptrace, cap_perfmon and cap_bpf
check 'it has four capabilities' says 000000c000080004 status CapEff
check 'it can get no others' says 000000c000080004 status CapBnd
check 'it can gain none by a program' says 1 status NoNewPrivs
check 'its system calls are filtered' says 2 status Seccomp
check 'others cannot read its data' says '750 slowpath' on_machine stat -c '%a %U' /var/lib/slowpath
check 'it watches in the kernel, too' until_says 'slowpath_source_up{source="tap"} 1' fetch /metrics

pid=$(property MainPID)
check 'it reloads' on_machine systemctl reload slowpath
on_machine sh -c 'echo "no-such-option: 1" >>/etc/slowpath/slowpath.yaml'
check 'a configuration with an error is refused' not on_machine systemctl reload slowpath
check 'and said with its line' until_says 'slowpath.yaml:' on_machine journalctl -u slowpath -o cat --no-pager
check 'the service goes on' says "$pid" property MainPID
on_machine sed -i '/^no-such-option/d' /etc/slowpath/slowpath.yaml
check 'it upgrades' on_machine dpkg -i --force-confold /new.deb
check 'the upgrade has started the new version' not says "$pid" property MainPID
check 'it answers again' until_says '"schema"' fetch /healthz

# An incident while nobody watches: scripts that hold the event loop, while clients call.
clients=()
for _ in 1 2 3 4; do
	on_machine redis-cli -r 600 -i 0.01 get key >"$temporary/load" 2>&1 &
	clients+=($!)
done
for _ in $(seq 12); do
	on_machine redis-cli eval 'local x=0 for i=1,20000000 do x=x+i end return x' 0 >"$temporary/output"
done
wait "${clients[@]}" || true
within=120 # an incident is watched for up to two minutes
check 'the incident is there, with its cause' until_says '"lua-or-multi-long"' fetch /api/v1/incidents
check 'and those who called' says '"redis-cli"' fetch /api/v1/incidents
within=30

check 'it is removed' on_machine dpkg -r slowpath
check 'the service has ended' says inactive on_machine systemctl is-active slowpath
check 'its data stays' on_machine test -d /var/lib/slowpath/incidents
check 'it is purged' on_machine dpkg -P slowpath
check 'its data is gone' not on_machine test -e /var/lib/slowpath
kill -9 "$machine"
