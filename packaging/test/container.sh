# The agent as Kubernetes runs it: the image with the rights and volumes of the chart, by runc. A server and a caller
# are in "pods" of their own, with cgroups, network namespaces and directories of logs as a kubelet makes them.
assignments=$(scripts/kubernetes helm seccomp)
eval "$assignments"
chart() { "$helm" template slowpath packaging/helm/slowpath --namespace slowpath "$@" 2>/dev/null; }
chart >"$temporary/agent.yaml"
chart --set 'agent.moreCapabilities={SETUID,SETGID,CHOWN,SETPCAP}' >"$temporary/steps-down.yaml"
manifest=$temporary/agent.yaml
host=$temporary/host server_pod=1aaaaaaa-0000-4000-8000-000000000000 caller_pod=2aaaaaaa-0000-4000-8000-000000000000
server_id=$(printf '1a%.0s' $(seq 32)) caller_id=$(printf '2a%.0s' $(seq 32))
caller_name=cart-789b6cdf47-x2k9w
mkdir -p "$host/var/lib/slowpath-agent" "$host/var/log/pods/shop_redis-0_$server_pod/redis" \
	"$host/var/log/pods/shop_${caller_name}_$caller_pod/"{app,proxy} "$host/var/log/containers"
ln -s /nowhere "$host/var/log/containers/${caller_name}_shop_app-$caller_id.log"

mkdir -p "$temporary/of-agent" "$temporary/bundle"
tar -xf "$out/slowpath-$version.oci.tar" -C "$temporary/of-agent"
python3 "$here/image.py" choose "$temporary/of-agent" "$arch"
umoci unpack --image "$temporary/of-agent:$(echo "$version" | tr '~+' '--')" "$temporary/bundle/$arch" 2>/dev/null
# contained NAME CAPABILITIES ARGUMENT…
contained() {
	local name=$1
	shift
	python3 "$here/container.py" "$temporary/bundle/$arch" "$manifest" "$host" "$seccomp" "$@" &&
		runc --root "$temporary/runc" run --bundle "$temporary/bundle/$arch" "$name" </dev/null
}

# cgroup PATH: made where CPU quotas are.
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then quotas=/sys/fs/cgroup; else quotas=/sys/fs/cgroup/cpu; fi
cgroup() {
	local at=$quotas part
	for part in ${1//\// }; do
		[ ! -e "$at/cgroup.subtree_control" ] || echo +cpu >"$at/cgroup.subtree_control"
		at=$at/$part
		mkdir -p "$at"
	done
	echo "$at"
}
server_group=$(cgroup "kubepods/burstable/pod$server_pod/$server_id")
caller_group=$(cgroup "kubepods/burstable/pod$caller_pod/$caller_id")
groups+=("${server_group%/*}" "${caller_group%/*}")
if [ -e "$server_group/cpu.max" ]; then
	echo '20000 100000' >"$server_group/cpu.max"
else
	echo 20000 >"$server_group/cpu.cfs_quota_us"
fi
# within GROUP COMMAND…: in that cgroup
within() { sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh "$@"; }

ip netns delete slowpath-redis 2>/dev/null || true # of a run that was killed
ip netns add slowpath-redis
ip link add sp-host type veth peer name sp-redis netns slowpath-redis
ip address add 10.213.7.1/30 dev sp-host
ip link set sp-host up
ip -n slowpath-redis address add 10.213.7.2/30 dev sp-redis
ip -n slowpath-redis link set sp-redis up
ip -n slowpath-redis link set lo up
within "$server_group" ip netns exec slowpath-redis \
	redis-server --port 6379 --bind 10.213.7.2 --protected-mode no --save '' --dir "$host" \
	--pidfile "$temporary/redis.pid" --daemonize yes >"$temporary/redis.log"
call() { within "$caller_group" redis-cli -h 10.213.7.2 "$@"; }
until call ping >/dev/null 2>&1; do sleep 0.1; done
while :; do
	call eval 'local x=0 for i=1,4000000 do x=x+i end return x' 0
	call -r 20 -i 0.01 get key
done >/dev/null 2>&1 &
calls=$!
booted+=("$calls" "$(cat "$temporary/redis.pid")") # ended with the test

# The caller's calls use up the quota of the server.
contained slowpath-record all record 10.213.7.2:6379 --for 8s -o /var/lib/slowpath/of-pods.slowpath \
	>"$temporary/record" 2>&1 || cat "$temporary/record"
recorded() { contained slowpath-reader '' "$@" /var/lib/slowpath/of-pods.slowpath 2>&1; }
recorded doctor >"$temporary/doctor" || true
recorded doctor --json >"$temporary/doctor.json" || true
answers() { says "$1" tr -s ' \n' ' ' <"$temporary/doctor"; } # lines are wrapped
of() { jq -r "$1" "$temporary/doctor.json"; }
check 'all sources work' answers \
	"seen by: own calls [probe], INFO [server], stacks [profile], host's /proc [host], kernel [tap]"
check 'the quota of the pod is seen' not answers 'its cgroup is not mounted here'
check 'time throttled by it is seen' answers "server throttled - its cgroup's CPU quota was used up"
check 'the caller is named by its pod' says "shop $caller_name app cart" of '.callers[] |
	select(.pod_name) | "\(.pod_namespace) \(.pod_name) \(.container_name) \(.deployment)"'
rm "$host/var/lib/slowpath-agent/of-pods.slowpath"

health() { curl -s http://127.0.0.1:21095/healthz; }
watched() { health | jq -r '.targets[] | select(.target == "10.213.7.2:6379") | "\(.found) \(.state)"'; }
# begin [TARGET], end: of the agent. Other servers of this machine are not those of the test.
begin() {
	contained slowpath-agent all serve --data=/var/lib/slowpath --listen=127.0.0.1:21095 "$@" >"$temporary/serve" 2>&1 &
	agent=$!
	for _ in $(seq 60); do [[ $(watched) == *watched ]] && break || sleep 0.5; done
	pid=$(jq -r .init_process_pid "$temporary/runc/slowpath-agent/state.json")
}
end() { runc --root "$temporary/runc" kill slowpath-agent TERM && wait $agent; }
status() { tr '\t' ' ' <"/proc/$pid/status"; }
begin
check 'the agent finds the server in its pod' says 'true watched' watched
end
begin 10.213.7.2:6379
check 'its health is ok' says ok jq -r .status <<<"$(health)"
# Only the tap sees calls of others.
tap_sees() { curl -s http://127.0.0.1:21095/metrics | grep -E '^slowpath_calls_total\{.*whose="users".* [1-9]'; }
for _ in $(seq 60); do tap_sees >/dev/null && break || sleep 0.5; done
check 'the tap sees calls' tap_sees
# What takes CAP_SYS_ADMIN or CAP_NET_ADMIN, and a setting of the server.
check 'nothing else is unseen' silent jq -r '.unseen[].what | select(test(
	"netfilter|LATENCY|each connection|settings of the server.s namespace|queueing disciplines") | not)' <<<"$(health)"
check 'it has four capabilities' says 'CapEff: 000000c000080004' status
check 'the filters of containerd and its own hold' says 'Seccomp_filters: 2' status
check 'its root is read-only' not touch "/proc/$pid/root/etc/x"
end
check 'it ends in good order' says stopped cat "$temporary/serve"
check 'its data is its own' says 'root 700' stat -c '%U %a' "$host/var/lib/slowpath-agent/ring"

manifest=$temporary/steps-down.yaml
for time in first second; do
	begin 10.213.7.2:6379
	check "with the right to, it gives up root: the $time time" says 'Uid: 65532 65532 65532 65532' status
	check 'and all but four capabilities' says 'CapPrm: 000000c000080004' status
	check 'its health is ok' says ok jq -r .status <<<"$(health)"
	for _ in $(seq 60); do tap_sees >/dev/null && break || sleep 0.5; done
	check 'the tap sees calls' tap_sees
	end
done

kill $calls
wait $calls 2>/dev/null || true
redis-cli -h 10.213.7.2 shutdown nosave
ip netns delete slowpath-redis
