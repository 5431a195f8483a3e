# The formula without Homebrew, which is not packaged for Debian: its install and its test run with stand-ins for the
# methods of Homebrew that it uses, and its build runs for macOS. That macOS runs the program was not tested.
source=$temporary/source
mkdir "$source"
check 'its syntax' ruby -c "$out/slowpath.rb"
check 'its checksum is that of the source' grep -q "$(sha256sum <"$out/slowpath-$version.tar.gz" | cut -d' ' -f1)" \
	"$out/slowpath.rb"
tar -xzf "$out/slowpath-$version.tar.gz" -C "$source"
# brewed [NAME=VALUE]…: install, and on this system also the test.
brewed() { (cd "$source"/* && env "$@" ruby "$OLDPWD/$here/formula.rb" "$out/slowpath.rb" "$temporary/brewed/$*"); }
check 'install and test, here' brewed
check 'it builds for macOS on arm64' brewed GOOS=darwin GOARCH=arm64
check 'it builds for macOS on amd64' brewed GOOS=darwin GOARCH=amd64
for cpu in arm64 amd64; do
	check "a program of macOS for $cpu" says 'Mach-O 64-bit' file "$temporary/brewed/GOOS=darwin GOARCH=$cpu/bin/slowpath"
done
