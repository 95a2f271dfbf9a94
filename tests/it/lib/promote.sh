# The whole pipeline over promotions: where it is, and whether it is where the new primary is.
# shellcheck shell=bash

timeline_of() { local tli; read -r tli _ <"$S/pos/$1" && echo "$tli"; }
timeline_is() { [ "$(timeline_of "$1")" = "$2" ]; }
not_running() { [ ! -e "$S/run/$1.pid" ]; }
kept_copy() { compgen -G "$S/shadow.keep/????????????????" >/dev/null; }
captured_ge() { pos_ge "$S/pos/captured.$(sql "$1" "SELECT oid FROM pg_database WHERE datname = 'app'")" "$2"; }

# same_as SERVER DESC: all tables of app, the history of shapes, the shadow's own catalogs.
same_as() {
  local db
  pipe_drained "$1" "$2" 90 || return 1
  pipe_compare "$1" app
  db=$(sql "$1" "SELECT oid FROM pg_database WHERE datname = 'app'")
  shapes_of_source "$1/app" >"$T/source.shapes"
  shapes_of_history "$S/catalog" "$db" >"$T/history.shapes"
  is "$(diff "$T/source.shapes" "$T/history.shapes" | head -n 5)" '' "$2: the history is its catalogs"
}

read_from() {
  pipe_source "$(pg_hosts "$1")"
  pipe_kill9 receive
}
