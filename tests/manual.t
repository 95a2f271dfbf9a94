#!/usr/bin/env bash
# Every program has a manual page; the options in its --help and in the page are the same, both
# ways; --help, --version and a wrong option do what they do everywhere.
set -u
export LC_ALL=C
top=$(cd "$(dirname "$0")/.." && pwd)
build=${WS_BUILD:-$top/build}
n=0 failed=0

result() {
  n=$((n + 1))
  if [ "$1" = 0 ]; then
    echo "ok $n - $2"
  else
    echo "not ok $n - $2"
    failed=1
  fi
}

# Options that a text mentions: -x, --name, one a line.
options_of_help() {
  grep -oE '(^|[[:space:](\[,|])-(-[a-z][a-z0-9-]*|[A-Za-z?])' <<<"$1" |
    sed 's/^[^-]*//' | sort -u
}

# The same of a page: the arguments of Fl.  With a second argument only those of list items, which
# describe an option.
options_of_page() {
  sed 's/\\&//g' "$1" | awk -v items="${2:-}" '
    items && !/^\.It Fl/ { next }
    /^\./ {
      flag = 0 # 1 after Fl, 2 after its first argument
      for (i = 1; i <= NF; i++) {
        word = $i
        sub(/^\./, "", word)
        if (word == "Fl") {
          dashes = flag == 1 ? "--" : "-"
          flag = 1
        }
        else if (word ~ /^[A-Z][a-z]$/) flag = 0
        else if (flag && word !~ /^[,|.;:)("]+$/) {
          print dashes word
          flag = 2
          dashes = "-"
        }
      }
    }' | sort -u
}

shopt -s nullglob
for program in "$build"/bin/*; do
  name=$(basename "$program")
  [ -x "$program" ] && [[ $name != *.sh ]] || continue
  page=$top/man/$name.1
  help=$("$program" --help 2>/dev/null </dev/null)
  result $? "$name --help"
  version=$("$program" --version 2>/dev/null </dev/null)
  [[ $version == "$name "*"$(cat "$top/VERSION")"* ]]
  result $? "$name --version: $version"
  message=$("$program" --no-such-option 2>&1 </dev/null)
  [ $? = 2 ] && [[ $message == *no-such-option* ]]
  result $? "$name: a wrong option is named and has exit status 2"
  [ -e "$page" ]
  result $? "$name has a manual page"
  [ -e "$page" ] || continue
  # popt gives these two to every tool.
  missing=$(comm -23 <(options_of_help "$help" | grep -vxe --usage -e '-?') <(options_of_page "$page"))
  [ -z "$missing" ] || echo "# not in $name.1:" "${missing//$'\n'/ }" >&2
  [ -z "$missing" ]
  result $? "$name: every option of --help is in the page"
  missing=$(comm -13 <(options_of_help "$help") <(options_of_page "$page" items))
  [ -z "$missing" ] || echo "# not in $name --help:" "${missing//$'\n'/ }" >&2
  [ -z "$missing" ]
  result $? "$name: every option that the page describes is in --help"
done
for page in "$top"/man/*.1; do
  name=$(basename "$page" .1)
  [ -x "$build/bin/$name" ]
  result $? "$name.1 has a program"
done
echo "1..$n"
exit $failed
