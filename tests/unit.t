#!/usr/bin/env bash
# Every unit test program (tests/unit), a line each.
set -u
build=${WS_BUILD:-$(dirname "$0")/../build}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp
programs=("$build"/unit/*)
n=0 failed=0
echo "1..$(find "$build/unit" -type f -perm -u+x ! -name '*.[od]' | wc -l)"
for p in "${programs[@]}"; do
  [ -f "$p" ] && [ -x "$p" ] || continue
  n=$((n + 1))
  if timeout 300 "$p" >"$tmp/out" 2>&1 </dev/null; then status=0; else status=$?; fi
  ran=$(sed -n 's/.*\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$tmp/out" | awk '{ s += $1 } END { print s + 0 }')
  if [ $status = 0 ] && [ "$ran" -gt 0 ]; then
    echo "ok $n - $(basename "$p"): $ran tests"
  else
    echo "not ok $n - $(basename "$p"): status $status, $ran tests passed"
    failed=1
    grep -v '\[ *\(RUN\|OK\)' "$tmp/out" | tail -n 60 | sed 's/^/# /' >&2
  fi
done
exit $failed
