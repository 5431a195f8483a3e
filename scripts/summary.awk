# Sums up the output of go test -json, one event per line with its fields in a fixed order (go doc test2json).

function field(name,    s) {
	if (!match($0, "\"" name "\":\"([^\"\\\\]|\\\\.)*\"")) return ""
	s = substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 5)
	return s
}

function plain(s) {
	gsub(/\\\\/, "\001", s)
	gsub(/\\u003c/, "<", s); gsub(/\\u003e/, ">", s); gsub(/\\u0026/, "\\&", s)
	gsub(/\\t/, "\t", s); gsub(/\\n/, "\n", s); gsub(/\\"/, "\"", s)
	gsub("\001", "\\", s)
	return s
}

# short leaves the module out of a package's name.
function short(pkg) { sub(/^slowpath\//, "", pkg); return pkg }

{
	action = field("Action"); pkg = field("Package"); test = field("Test"); key = pkg " " test
}

action == "build-output" { built[field("ImportPath")] = built[field("ImportPath")] plain(field("Output")); next }
action == "build-fail" { failures = failures "\n" built[field("ImportPath")]; next }

action == "output" {
	text = plain(field("Output"))
	if (test == "" && text ~ /^(ok|FAIL|\?)[ \t]/) {
		if (text !~ /no test files/) printf "%s", text
	} else if (test == "" || text !~ /^(===|PASS)/) {
		output[key] = output[key] text
	}
	next
}

test != "" && action == "pass" { passed++; delete output[key] }
test != "" && action == "fail" { failed++; failedIn[pkg]++; failures = failures "\n" short(pkg) "\n" output[key] }
test != "" && action == "skip" {
	skipped++
	why = output[key]
	gsub(/[ \t]*--- SKIP[^\n]*\n/, "", why)
	sub(/^[ \t\n]+/, "", why); sub(/[ \t\n]+$/, "", why)
	n = split(why, lines, "\n"); why = lines[n]      # a skip is the last thing that a test says
	sub(/^[ \t]*[A-Za-z0-9_]+\.go:[0-9]+:[ \t]*/, "", why)
	if (why == "") why = "(no reason given)"
	skips[why] = skips[why] "\n    " short(pkg) " " test
	if (!(why in seen)) { seen[why] = 1; order[++reasons] = why }
}

# A package that fails without a test that failed: it did not build, or its binary died.
test == "" && action == "fail" && !failedIn[pkg] {
	failed++
	failures = failures "\n" short(pkg) ": does not build, or died\n" output[pkg " "]
}

END {
	if (failed) print "\n=== failures ===" failures
	if (skipped) {
		print "\n=== skipped, and why ==="
		for (i = 1; i <= reasons; i++) print order[i] skips[order[i]]
	}
	if (code != 0 && !failed) {
		failed = 1
		print "\ngo test ended with exit code " code " (its output: bin/test.json, bin/test.stderr)"
	}
	printf "\n%d passed, %d failed, %d skipped\n", passed, failed, skipped
}
