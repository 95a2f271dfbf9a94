# An object store that speaks S3, or plain HTTP; see tests/prog/s3d.c.
# shellcheck shell=bash disable=SC2034 # the variables are for tests

# s3_start [NAME [OPTION...]]: the store NAME (s3) with the bucket `bucket`; $S3_URL is its address,
# $S3_DIR its folder, $S3 the options of ws-archive for a store in that bucket, to be continued by
# /PREFIX.  The keys are in the environment.
s3_start() {
  local name=${1:-s3}
  S3_DIR=$T/$name.d
  mkdir -p "$S3_DIR/o/bucket"
  free_port
  S3_PORT=$PORT
  S3_URL=http://127.0.0.1:$PORT
  S3="--region test-1 --endpoint $S3_URL --store s3://bucket"
  # Secrets have what has to be escaped elsewhere.
  export AWS_ACCESS_KEY_ID=AKTEST AWS_SECRET_ACCESS_KEY='se/cr+et==' AWS_SESSION_TOKEN='to/ke+n=='
  s3_again "$@"
}

# The same store at the same place, after a stop.
s3_again() {
  local name=${1:-s3}
  shift
  bg "$name" s3d -l "$S3_PORT" -k "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" -t "$AWS_SESSION_TOKEN" "$@" "$S3_DIR"
  wait_for -m 'the object store' bash -c "exec 3<>/dev/tcp/127.0.0.1/$S3_PORT" 2>/dev/null
}

# http_start NAME [OPTION...]: a web server that takes PUT; $HTTP_URL, $HTTP_DIR.
http_start() {
  HTTP_DIR=$T/$1.d
  mkdir -p "$HTTP_DIR/o"
  free_port
  HTTP_URL=http://127.0.0.1:$PORT
  bg "$1" s3d -l "$PORT" "${@:2}" "$HTTP_DIR"
  wait_for -m 'the web server' bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT" 2>/dev/null
}

# s3_rule ACTION COUNT REGEX: see s3d.
s3_rule() { printf '%s %s %s\n' "$@" >"$S3_DIR/rule"; }
