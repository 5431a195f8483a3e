# The image, unpacked by umoci and run by crun. No registry and no daemon takes part.
tag=$(echo "$version" | tr '~+' '--')
kernel=CAP_BPF,CAP_PERFMON,CAP_SYS_PTRACE,CAP_DAC_READ_SEARCH
redis=$temporary/redis
helper() { python3 "$here/image.py" "$@"; }

# unpack ARCHITECTURE: to $temporary/image/ARCHITECTURE, a bundle of the OCI runtime specification.
unpack() {
	rm -rf "$temporary/layout"
	mkdir -p "$temporary/layout" "$temporary/image"
	tar -xf "$out/slowpath-$version.oci.tar" -C "$temporary/layout"
	helper choose "$temporary/layout" "$1" && umoci unpack --image "$temporary/layout:$tag" "$temporary/image/$1"
}
# contained CAPABILITIES ARGUMENT…: runs it. crun refuses hosts with both versions of cgroups: it sees v2 alone here.
contained() {
	helper run "$temporary/image/$arch" "$@" &&
		unshare --mount sh -c 'mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"' sh \
			crun --cgroup-manager=disabled --root "$temporary/crun" run --bundle "$temporary/image/$arch" \
			"slowpath-$$" </dev/null
}

mkdir "$temporary/all"
tar -xf "$out/slowpath-$version.oci.tar" -C "$temporary/all"
check 'it has two architectures' says $'amd64\narm64' helper architectures "$temporary/all"
for one in amd64 arm64; do check "the image of $one unpacks" unpack "$one"; done
check 'the binary of arm64 is one' says AArch64 readelf -h "$temporary/image/arm64/rootfs/usr/bin/slowpath"
check 'it has nothing else that runs' says 1 sh -c "find '$temporary/image/$arch/rootfs' -type f -perm /111 | wc -l"
check 'version' says "slowpath $version" contained '' version
check 'the user is not root' says '"uid": 65532' cat "$temporary/image/$arch/config.json"
check 'it says how it is used' says 'slowpath COMMAND' contained '' --help

# A server of its own, with scripts that hold its event loop for longer than a call may take.
mkdir -m 755 "$redis"
redis-server --port 21090 --bind 127.0.0.1 --save '' --dir "$redis" --daemonize yes --pidfile "$redis/pid" >/dev/null
until redis-cli -p 21090 ping >/dev/null 2>&1; do sleep 0.1; done
load() {
	for _ in $(seq 20); do
		redis-cli -p 21090 eval 'local x=0 for i=1,20000000 do x=x+i end return x' 0
		sleep 0.3
	done >"$redis/load" 2>&1
}
load &
check 'doctor as nobody, without the tap' says lua-or-multi-long contained '' doctor 127.0.0.1:21090 --no-tap --for 6s
wait $!
load &
check 'doctor with four capabilities: the kernel' says '[tap]' contained $kernel doctor 127.0.0.1:21090 --for 6s
wait $!
kill "$(cat "$redis/pid")"
