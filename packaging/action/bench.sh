#!/usr/bin/env bash
# What the action runs: slowpath bench with $FAIL_IF on $TARGET, with $OPTIONS. $JUNIT is made, and what
# $GITHUB_STEP_SUMMARY names gets the figures.
set -uo pipefail
command -v slowpath >/dev/null || {
	echo 'slowpath is missing: install its package first (docs/packages.md)' >&2
	exit 4
}
summary=$(mktemp -d)
trap 'rm -rf "$summary"' EXIT
read -ra options <<<"${OPTIONS-}"
slowpath bench "$TARGET" "${options[@]}" --fail-if "$FAIL_IF" --summary "$summary/bench.md" --summary "$JUNIT"
code=$?
if [ -n "${GITHUB_STEP_SUMMARY-}" ] && [ -f "$summary/bench.md" ]; then
	cat "$summary/bench.md" >>"$GITHUB_STEP_SUMMARY"
fi
exit $code
