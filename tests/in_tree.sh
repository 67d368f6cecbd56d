#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# in_tree.sh ompi5|ompi6 PART   a part of make check-long on another release of Open MPI, in the tree that ./test.sh ompi5 or ompi6 uses too
# (contrib/tree.sh makes it if it is missing; needs root). The build is in ompi5 or ompi6 of the build directory. Parts:
#   faults     the cells of the fault matrix that TREE_FAULTS selects (all of them)
#   soak       the soak, for TREE_SOAK_SECONDS (300)
#   packages   the Debian packages: built, installed in a tree that has nothing else, used, and purged
#   ulfm       processes die while a rail is cut (mpi/ulfm_list.sh), BFO_ULFM_RUNS (10) times each
#   fuzz       the fuzz program of the BTL with its kept inputs; the world of the PML and the simulated jobs do not compile there yet
set -u
: "${BFO_BUILDDIR:?source tests/env.sh of the build directory first}"
fail() { echo "FAIL in_tree: $*"; exit 1; }
[ $# = 2 ] || { echo "usage: in_tree.sh ompi5|ompi6 faults|soak|packages|ulfm|fuzz" >&2; exit 2; }
case $1 in
ompi5) suite=trixie ;;
ompi6) suite=forky ;;
*) fail "no release '$1'" ;;
esac
top=$BFO_SRCDIR build=$BFO_BUILDDIR/$1 trees=$BFO_SRCDIR-trees
case $BFO_BUILDDIR in
"$top"/*) ;;
*) fail "$BFO_BUILDDIR is not in $top, and the tree sees nothing else" ;;
esac
cd "$top" || exit 1
unset LD_PRELOAD MAKEFLAGS MFLAGS MAKELEVEL # they belong to the build for this machine
tree=(bash contrib/tree.sh "$suite" "$trees/$suite")
# in_build COMMAND: runs the command in the tree, in the environment of the tree's build.
in_build() { "${tree[@]}" bash -c '. "$1/tests/env.sh" && eval "$2"' in-build "$build" "$1"; }

# Parts of both releases have trees and builds of their own; parts of one release follow each other.
"${tree[@]}" bash contrib/build.sh "$build" --enable-werror || fail "no build for $1"
case $2 in
faults) in_build "make -s -C $build/tests/sim/matrix check-faults" ;;
soak) in_build "make -s -C $build/tests/soak run-soak SECONDS=${TREE_SOAK_SECONDS:-300} SEED=${SEED:-1}" ;;
packages)
    in_build "bash tests/packages/build.sh $BFO_BUILDDIR/packages-$suite" &&
        bash contrib/tree.sh --bare "$suite" "$trees/bare-$suite" bash tests/packages/install.sh "$BFO_BUILDDIR/packages-$suite"
    ;;
ulfm) in_build "make -s -C $build/tests/mpi mpi_ulfm && bash tests/mpi/ulfm_list.sh" ;;
fuzz) in_build "BFO_WORLD_CFLAGS='-fsanitize=address,undefined -fno-sanitize=alignment -fno-sanitize-recover=undefined' bash tests/fuzz/fuzz.sh btl once" ;;
*) fail "no part '$2'" ;;
esac || fail "$1: $2"
