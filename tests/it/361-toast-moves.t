#!/usr/bin/env bash
# TOAST values in tables that move, are rewritten, truncated, exchanged; see 360-toast.t.
: "${WS_TOAST_PARTS:=moves swap}"
# shellcheck source=360-toast.t
. "$(dirname "$0")/360-toast.t"
