# The deb in a root with nothing but the essential packages of Debian 12: no systemd, no man.
base bare
older
deb=$(echo "$out"/slowpath_*_"$arch".deb)
lab=$(echo "$out"/slowpath-lab_*_"$arch".deb)
wants=etc/systemd/system/multi-user.target.wants/slowpath.service
state=var/lib/slowpath/kept

# put FILE: installs it, keeping a configuration that was changed.
put() {
	cp "$1" "$root/package.deb"
	inside dpkg --force-confdef --force-confold -i /package.deb
}
# attributes PATH: mode, owner, group.
attributes() { inside stat -c '%a %U %G' "$1"; }

fresh bare
check 'it installs an older version' put "$temporary/older/older.deb"
check 'version of the package' says 0.0.0~1-1 inside dpkg-query -W slowpath
check 'files have the checksums of the package' silent inside dpkg -V slowpath
check 'mode and owner of the program' says '755 root root' attributes /usr/bin/slowpath
check 'mode and owner of the configuration' says '644 root root' attributes /etc/slowpath/slowpath.yaml
check 'mode and owner of a manual page' says '644 root root' attributes /usr/share/man/man1/slowpath-doctor.1.gz
check 'the program runs' says "slowpath $version" inside slowpath version
check 'the user has no shell' says ':/var/lib/slowpath:/usr/sbin/nologin' inside getent passwd slowpath
check 'the service is enabled' test -L "$root/$wants"
check 'no file is writable by others' not grep -q . <(inside dpkg -L slowpath | sort -u | while read -r path; do
	[ -d "$root$path" ] || find "$root$path" -perm /022 -type f
done)

echo '# of the administrator' >>"$root/etc/slowpath/slowpath.yaml"
mkdir -p "$root/${state%/*}" && touch "$root/$state"
check 'it upgrades' put "$deb"
check 'version after the upgrade' says "$version-1" inside dpkg-query -W slowpath
check 'a changed configuration is kept' has "$root/etc/slowpath/slowpath.yaml" '# of the administrator'
check 'the new one is beside it' cmp packaging/slowpath.yaml "$root/etc/slowpath/slowpath.yaml.dpkg-dist"
check 'the state is kept' test -e "$root/$state"

mount -t proc proc "$root/proc" # by which a program knows where it is
mounts=("$root/proc" "${mounts[@]}")
check 'the lab is not in the package' says 'slowpath-lab is missing' inside slowpath lab list
check 'the lab installs' put "$lab"
check 'slowpath lab runs it' says server-cfs-throttled inside slowpath lab list
check 'its manual page is there' test -f "$root/usr/share/man/man1/slowpath-lab-run.1.gz"
check 'it needs this version of slowpath' says "slowpath (= $version-1)" inside dpkg-query -W -f '${Depends}' slowpath-lab
check 'the lab is removed' inside dpkg -P slowpath-lab
check 'it is removed' inside dpkg -r slowpath
check 'the program is gone' not test -e "$root/usr/bin/slowpath"
check 'configuration and state stay' test -e "$root/etc/slowpath/slowpath.yaml" -a -e "$root/$state"
check 'it is purged' inside dpkg -P slowpath
check 'nothing is left' silent find "$root/etc" "$root/usr" "$root/var/lib" -name '*slowpath*'
check 'no link of the service is left' not test -L "$root/$wants"
check 'the user stays' inside getent passwd slowpath

fresh bare
put "$temporary/older/older.deb" >"$temporary/output" 2>&1
rm "$root/$wants" # systemctl disable
put "$deb" >"$temporary/output" 2>&1
check 'a configuration as it was is upgraded' cmp packaging/slowpath.yaml "$root/etc/slowpath/slowpath.yaml"
check 'a disabled service stays disabled' not test -e "$root/$wants"
