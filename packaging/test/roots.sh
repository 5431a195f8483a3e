# Roots of Debian 12 to install into: each test gets a copy that is written over (overlayfs), and thrown away.

cache=$HOME/.cache/slowpath/packages
mounts=()
groups=()
booted=()

# base NAME [PACKAGE…]: makes a root, once. apt installs the packages: debootstrap knows no virtual packages.
base() {
	local root=$cache/$1.part
	[ ! -d "$cache/$1" ] || return 0
	echo "making $cache/$1 (debootstrap)"
	mkdir -p "$cache"
	rm -rf "$root"
	{
		nice debootstrap --variant=minbase bookworm "$root" &&
			printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" && # no service is started
			chmod +x "$root/usr/sbin/policy-rc.d" &&
			{ [ $# = 1 ] || { inside apt-get update && inside apt-get install -y --no-install-recommends "${@:2}"; }; }
	} >"$temporary/debootstrap" 2>&1 || {
		tail -20 "$temporary/debootstrap" >&2
		return 1
	}
	rm -f "$root/usr/sbin/policy-rc.d" "$root"/var/cache/apt/archives/*.deb
	mv "$root" "$cache/$1"
}

# fresh NAME: sets root to a copy of a base.
fresh() {
	local dir
	dir=$(mktemp -d "$temporary/root.XXXX")
	mkdir "$dir/upper" "$dir/work" "$dir/root"
	mount -t overlay overlay -o "lowerdir=$cache/$1,upperdir=$dir/upper,workdir=$dir/work" "$dir/root"
	mounts+=("$dir/root")
	root=$dir/root
}

# inside COMMAND…: in the root, without a service manager.
inside() { DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 chroot "$root" "$@"; }

# The packages of an older version, made by the same tool, with another configuration file.
older() {
	[ -d "$temporary/older" ] && return
	mkdir -p "$temporary/older/packaging"
	cp -r packaging/{deb,rpm,systemd,nfpm.yaml,slowpath.yaml} "$temporary/older/packaging/"
	sed -i 's/^# Recordings, .*/# What it keeps./' "$temporary/older/packaging/slowpath.yaml"
	sed -i 's/compression: .*/compression: gzip/' "$temporary/older/packaging/nfpm.yaml" # faster
	(
		cd "$temporary/older"
		export ARCH=$arch WORK=$out/work VERSION=0.0.0~1 SOURCE_DATE_EPOCH=0 MAINTAINER='Older <older@localhost>'
		for packager in deb rpm; do
			"$out/work/tools/nfpm" package --config packaging/nfpm.yaml --packager $packager --target older.$packager
		done
	) >"$temporary/output"
}

clean() {
	local pid path
	for pid in "${booted[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
	sleep 0.2
	for path in "${mounts[@]}"; do umount -l "$path" || true; done
	for path in "${groups[@]}"; do find "$path" -depth -type d -exec rmdir {} \; 2>/dev/null || true; done
	rm -rf "$temporary"
}

# boot: starts systemd of the root as process 1 of namespaces of its own; sets machine to its pid. The root has a cgroup
# (v2) of its own, with the controllers that this host gives to v2, and a network of its own, loopback alone.
boot() {
	local unified group
	unified=$(findmnt -nt cgroup2 -o TARGET | head -1)
	group=$unified/slowpath-packages-$$
	mkdir "$group"
	groups+=("$group")
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
		unshare --mount --pid --fork --uts --ipc --net --cgroup bash "$here/boot" "$root" \
		</dev/null >"$temporary/console" 2>&1 &
	local unshared=$!
	until machine=$(pgrep -P "$unshared" -x systemd); do
		kill -0 "$unshared" || {
			cat "$temporary/console" >&2
			return 1
		}
		sleep 0.1
	done
	booted+=("$machine")
	until_says running on_machine systemctl is-system-running || until_says degraded on_machine systemctl \
		is-system-running
}

# on_machine COMMAND…: in the booted root.
on_machine() { nsenter -t "$machine" -a -r -w env LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

# until_says TEXT COMMAND…: runs it again for up to $within seconds (30), until it prints the text.
until_says() {
	local end=$((SECONDS + ${within:-30}))
	until says "$@" >"$temporary/until" 2>&1; do
		[ $SECONDS -lt $end ] || {
			cat "$temporary/until"
			return 1
		}
		sleep 0.2
	done
}
