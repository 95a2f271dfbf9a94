#!/usr/bin/env bash
# TOAST values that are not known, many, large, damaged; see 360-toast.t.
: "${WS_TOAST_PARTS:=policy limits}"
# shellcheck source=360-toast.t
. "$(dirname "$0")/360-toast.t"
