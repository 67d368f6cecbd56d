#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# tree.sh [--bare] SUITE DIR [COMMAND...]   makes a tree of another Debian suite (trixie has Open MPI 5.0, forky 6.0) with the packages
# that a build, the tests and the demo need, or with --bare without them, and runs COMMAND in the tree, in this directory. An existing tree is
# kept, unless the list of packages has changed.
# The tree comes from the mirror that apt uses on this machine. COMMAND sees this source tree at its own path, a /dev/shm of its own (so
# that its software rails are apart from those of the machine), and the machine's /proc and /dev. Needs root and debootstrap.
# The mounts are in a mount namespace of COMMAND and end with it.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
bare=
if [ "${1:-}" = --bare ]; then
    bare=yes
    shift
fi
[ $# -ge 2 ] || { echo "usage: tree.sh [--bare] SUITE DIR [COMMAND...]" >&2; exit 2; }
suite=$1 dir=$2
shift 2

say() { echo "tree.sh: $*" >&2; }
[ "$(id -u)" = 0 ] || { say "a tree of another suite needs root (debootstrap, chroot, mount)"; exit 3; }
command -v debootstrap >/dev/null || { say "debootstrap is missing: apt-get install debootstrap"; exit 3; }
mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 1
case $dir in
"$top" | "$top"/*) say "$dir lies in the source tree, which is bound into the tree: name a place outside"; exit 2 ;;
esac

# The archive whose indices apt has; apt's proxy, if it has one.
mirror() {
    apt-get indextargets --format '$(REPO_URI) $(LABEL) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
        awk '$2 == "Debian" && $3 == "main" { print $1; exit }'
}
eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
[ -z "${http_proxy:-}" ] || export http_proxy
[ -z "${https_proxy:-}" ] || export https_proxy

# in_tree COMMAND...: runs COMMAND in the tree, in a mount namespace of its own.
in_tree() {
    unshare --mount --propagation private -- /bin/bash -c '
        dir=$1 top=$2 here=$3
        shift 3
        mount -t tmpfs -o mode=1777 tmpfs "$dir/tmp" && mkdir -p "$dir$top" && mount --bind "$top" "$dir$top" &&
            mount -t proc proc "$dir/proc" && mount --rbind /sys "$dir/sys" && mount --rbind /dev "$dir/dev" &&
            mount -t tmpfs -o mode=1777 tmpfs "$dir/dev/shm" || exit 125
        exec chroot "$dir" /bin/bash -c "cd \"\$1\" && shift && exec \"\$@\"" in-tree "$here" "$@"' tree "$dir" "$top" "$PWD" "$@"
}

packages=ca-certificates
[ -n "$bare" ] || packages=$(bash "$top/contrib/packages.sh" --list build tree perf packages) || exit 1
stamp=$dir/.bfo-tree
if [ "$(cat "$stamp" 2>/dev/null)" != "$suite $packages" ]; then
    log=$dir.log
    : >"$log"
    run() { "$@" >>"$log" 2>&1 </dev/null || { tail -n 15 "$log" >&2; say "'$1' failed; the whole log is $log"; exit 1; }; }
    if [ ! -e "$dir/.bfo-base" ]; then
        from=$(mirror)
        [ -n "$from" ] || { say "apt knows no Debian archive: run apt-get update, or set its sources"; exit 3; }
        [ -z "$(ls -A "$dir" | grep -vx .bfo-part)" ] || [ -e "$dir/.bfo-part" ] || { say "$dir holds something else, and is left alone"; exit 2; }
        find "$dir" -mindepth 1 -xdev -delete
        : >"$dir/.bfo-part"
        say "making a tree of Debian $suite in $dir"
        # To debootstrap a suite younger than itself is unknown; the way to make a tree is that of sid.
        script=
        [ -e "/usr/share/debootstrap/scripts/$suite" ] || script=sid
        run debootstrap --variant=minbase "$suite" "$dir" "$from" $script
        printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
        chmod 755 "$dir/usr/sbin/policy-rc.d"
        : >"$dir/.bfo-base"
    fi
    say "installing what is needed in it"
    # Without it dpkg waits for the disk after each file. A tree that a power cut spoils is made again.
    echo force-unsafe-io >"$dir/etc/dpkg/dpkg.cfg.d/90tree"
    cp -L /etc/resolv.conf /etc/hosts "$dir/etc/"
    export DEBIAN_FRONTEND=noninteractive LC_ALL=C
    # A mirror may have a snapshot of the suite of an earlier day.
    printf 'Acquire::Check-Valid-Until "false";\nAPT::Sandbox::User "root";\nAcquire::Retries "3";\nAcquire::http::Timeout "60";\n' >"$dir/etc/apt/apt.conf.d/90tree"
    run in_tree apt-get update
    found=$(in_tree bash -c 'for package; do apt-cache show "$package" >/dev/null 2>&1 && echo "$package"; done' look $packages)
    for package in $packages; do
        grep -qxF "$package" <<<"$found" || say "Debian $suite has no package $package: a test that needs it cannot run there"
    done
    run in_tree apt-get install -y --no-install-recommends $found
    run in_tree apt-get clean
    rm -f "$dir/.bfo-part"
    echo "$suite $packages" >"$stamp"
fi
[ $# -gt 0 ] || exit 0
export LC_ALL=C
in_tree "$@"
