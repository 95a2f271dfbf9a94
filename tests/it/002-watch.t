#!/usr/bin/env bash
# tests/watch: a test that hangs says where, fails in time and leaves nothing; the others are as
# they are without it.
. "$(dirname "$0")/lib/it.sh"

# inner: stdin after the library is $T/inner.t; watched SECONDS: and runs under tests/watch.
inner() {
  mkdir -p "$T/tmp"
  { printf '. %q\n' "$IT_LIB/it.sh"; cat; } >"$T/inner.t"
}

watched() {
  inner
  WS_FAILURES='' WS_TIMES='' TMPDIR=$T/tmp WS_TIMEOUT=$1 run "$TOP/tests/watch" "$T/inner.t"
}

left() { compgen -G "$T/tmp/wsit-*"; }

lock_is_waited_for() {
  [ "$(psql_bounded -XAtq -d "$(cat "$T/there")" -c 'SELECT count(*) FROM pg_locks WHERE NOT granted')" = 1 ]
}

# Its limit is over as soon as it hangs.
hanging() {
  inner <<'EOT'
outer() { inner; }
inner() { sql src 'DROP TABLE t'; }
setsid sleep 1000 &
pg_new src
sql src 'CREATE TABLE t (id int)' || die 'no table'
psql_bounded -Xq -d "$(pg_conninfo src) application_name=holder" -c 'BEGIN' -c 'LOCK TABLE t' -c 'SELECT pg_sleep(1000)' &
wait_for_is 1 sql src "SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass" || die 'no lock'
pass 'before it hangs'
pg_conninfo src >"$INNER_THERE"
outer
pass 'never'
done_testing
EOT
  WS_FAILURES='' WS_TIMES='' INNER_THERE=$T/there TMPDIR=$T/tmp bg runner "$TOP/tests/watch" "$T/inner.t"
  wait_for -m 'it to hang' lock_is_waited_for
  stop runner ALRM 120
  is "$STATUS" 124 'a test that hangs fails'
  OUT=$(cat "$T/runner.out") ERR=$(cat "$T/runner.err")
  like "$OUT" $'ok 1 - before it hangs\n.*not ok - .*inner.t is done within 1200 s' 'and says so'
  like "$ERR" 'sleep 1000' 'its processes are shown'
  like "$ERR" 'AccessExclusiveLock *\| f' 'and who waits for which lock'
  like "$ERR" '\{[0-9]+\}.*DROP TABLE t' 'and for whom'
  like "$ERR" 'holder' 'and who that is'
  like "$ERR" 'it hung in: ' 'and what it ran'
  like "$ERR" 'in inner \(inner.t:[23]\).*in outer \(inner.t:2\)' 'and where'
  like "$ERR" 'after test 1: before it hangs' 'and after what'
  ok 'none of its processes is left' wait_for -t 10 proc_none_left
  not_ok 'nor its folder' left
}

# One that has no trap: no test of the library.
plain() {
  printf 'trap "" TERM INT\nread -r _ <>%q\n' "$T/fifo" >"$T/plain.t"
  mkfifo "$T/fifo"
  WS_FAILURES='' WS_TIMES='' WS_TIMEOUT=1 run "$TOP/tests/watch" "$T/plain.t"
  is "$STATUS" 124 'a test that ignores signals is ended'
  like "$ERR" 'plain.t is not done after 1 s' 'and named'
}

in_time() {
  watched 60 <<<$'pass one\ndone_testing'
  is "$STATUS $OUT" $'0 ok 1 - one\n1..1' 'a test that passes is left alone'
  watched 0 <<<$'fail one\ndone_testing'
  is "$STATUS" 1 'one that fails fails, without a limit too'
  watched 60 <<<'kill -KILL $$'
  is "$STATUS" 137 'one that is killed fails'
}

# The runner that is stopped takes its test along.
stopped() {
  rm -f "$T/there"
  inner <<<"bg s sleep 1000; echo x >$(printf %q "$T/there"); wait_for -t 100 false"
  WS_FAILURES='' WS_TIMES='' TMPDIR=$T/tmp bg runner "$TOP/tests/watch" "$T/inner.t"
  wait_for -m 'the inner test' test -s "$T/there"
  stop runner "$1"
  is "$STATUS" "$2" "stopped by $1 it ends"
  ok 'and so does the test' wait_for -t 10 proc_none_left
}

hanging
plain
in_time
stopped TERM 143
stopped KILL 137
done_testing
