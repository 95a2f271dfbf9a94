#!/usr/bin/env bash
# Every fuzz target over its corpus (tests/fuzz/corpus/NAME) and over damaged copies of it, with
# the address and undefined-behaviour sanitizers.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
build=${WS_BUILD:-$top/build}
n=0 failed=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
echo "1..$(find "$build/replay" -type f -perm -u+x ! -name '*.[od]' | wc -l)"
for p in "$build"/replay/*; do
  [ -f "$p" ] && [ -x "$p" ] || continue
  n=$((n + 1))
  name=$(basename "$p")
  if out=$(timeout 300 "$p" "$top/tests/fuzz/corpus/$name" 2>&1 </dev/null); then
    echo "ok $n - $name: $out"
  else
    echo "not ok $n - $name"
    tail -n 40 <<<"$out" | sed 's/^/# /' >&2
    failed=1
  fi
done
exit $failed
