# The rpm in a root of Debian with rpm and systemd. There shadow-utils is no rpm, so that dependencies are not checked.
base full systemd systemd-sysv dbus redis-server rpm man-db iproute2 lintian
older
case $arch in amd64) machine=x86_64 ;; *) machine=aarch64 ;; esac
fresh full
mount -t proc proc "$root/proc"
mounts=("$root/proc" "${mounts[@]}")
cp "$out"/slowpath-[0-9]*".$machine.rpm" "$root/new.rpm"
cp "$out"/slowpath-lab-*".$machine.rpm" "$root/lab.rpm"
cp "$temporary/older/older.rpm" "$root/old.rpm"

check 'it installs an older version' inside rpm -i --nodeps /old.rpm
check 'all is as in the package' silent inside rpm -V --nodeps slowpath
check 'mode and owner of the program' says '755 root root' inside stat -c '%a %U %G' /usr/bin/slowpath
check 'the program runs' says "slowpath $version" inside slowpath version
check 'the user has no shell' says ':/var/lib/slowpath:/usr/sbin/nologin' inside getent passwd slowpath
check 'its configuration is known as such' says /etc/slowpath/slowpath.yaml inside rpm -qc slowpath
check 'its licence is known as such' says /usr/share/licenses/slowpath/LICENSE inside rpm -qL slowpath
check 'systemd finds no fault in the unit' inside systemd-analyze verify --man=no slowpath.service

echo '# of the administrator' >>"$root/etc/slowpath/slowpath.yaml"
check 'it upgrades' inside rpm -U --nodeps /new.rpm
check 'version after the upgrade' says "$version" inside rpm -q slowpath
check 'a changed configuration is kept' has "$root/etc/slowpath/slowpath.yaml" '# of the administrator'
check 'the new one is beside it' cmp packaging/slowpath.yaml "$root/etc/slowpath/slowpath.yaml.rpmnew"
check 'the manual page shows' says 'Why was a Redis or Valkey call slow?' inside env MANPAGER=cat man slowpath
check 'the lab installs' inside rpm -i /lab.rpm
check 'slowpath lab runs it' says server-cfs-throttled inside slowpath lab list
check 'the lab is removed' inside rpm -e slowpath-lab
check 'it is removed' inside rpm -e slowpath
check 'the program is gone' not test -e "$root/usr/bin/slowpath"
check 'the changed configuration is saved' test -e "$root/etc/slowpath/slowpath.yaml.rpmsave"

cp "$out"/*_"$arch".deb "$root/"
check 'lintian has no errors in the debs' inside lintian --allow-root --fail-on error \
	--suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs \
	$(cd "$root" && printf '/%s ' slowpath*.deb)
