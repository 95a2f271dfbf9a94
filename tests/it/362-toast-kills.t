#!/usr/bin/env bash
# TOAST values over kill -9 at random moments; see 360-toast.t.
: "${WS_TOAST_PARTS:=kills}"
# shellcheck source=360-toast.t
. "$(dirname "$0")/360-toast.t"
