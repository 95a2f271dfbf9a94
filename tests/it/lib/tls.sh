# Certificates, and TLS in front of a server on this machine; files in the folder at hand.
# shellcheck shell=bash

# cert NAME SUBJECT [ISSUER]: NAME.pem and NAME.key; without an issuer an authority.
cert() {
  openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -subj "/CN=$2" -out "$1.csr" 2>>openssl.err &&
    if [ -n "${3:-}" ]; then
      openssl x509 -req -in "$1.csr" -CA "$3.pem" -CAkey "$3.key" -CAcreateserial -days 2 -out "$1.pem" \
        -extfile <(echo "subjectAltName=DNS:$2,IP:127.0.0.1") 2>>openssl.err
    else
      openssl x509 -req -in "$1.csr" -signkey "$1.key" -days 2 -out "$1.pem" \
        -extfile <(echo 'basicConstraints=critical,CA:TRUE') 2>>openssl.err
    fi
}

# tls_start NAME CERT PORT [SOCAT OPTION]: a terminator in front of that port; TLS_URL.
tls_start() {
  local to=$3
  free_port
  # shellcheck disable=SC2034 # for the test
  TLS_URL=https://localhost:$PORT
  bg "$1" socat "OPENSSL-LISTEN:$PORT,bind=127.0.0.1,reuseaddr,fork,cert=$2.pem,key=$2.key${4:-,verify=0}" "TCP:127.0.0.1:$to"
  wait_for -m "the terminator $1" bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT" 2>/dev/null
}
