# The same commit gives the same bytes, whoever builds it and when.
cp "$out/SHA256SUMS" "$temporary/sums"
(
	export OUT=$temporary/again TZ=Asia/Tokyo LC_ALL=C.UTF-8 GOCACHE=$temporary/gocache GOFLAGS=-mod=mod
	[ -n "${FULL-}" ] || unset GOCACHE # FULL=1: compiles all again, in about ten minutes
	umask 077
	RELEASE_URL=file://$out VERSION=$version scripts/packages
) >"$temporary/output" 2>&1 || cat "$temporary/output"
check 'two builds have the same bytes' diff "$temporary/sums" "$temporary/again/SHA256SUMS"
rm -rf "$temporary/again"
