#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# bfo under the name mpirun, first in PATH: a job that asks for the PML bfo gets the parameters of bfo.conf, and runs over our openib; any
# other job reaches the next mpirun with the same arguments and environment. The user's own parameters override bfo.conf.
. "$BFO_SRCDIR/tests/lib.sh" || exit 1
unset OMPI_MCA_mca_base_component_path PMIX_MCA_mca_base_component_path
REAL=${MPIRUN%/*}
front=$TEST_TMP/front/bin other=$TEST_TMP/other
mkdir -p "$front" "$other" "$TEST_TMP/empty"
for name in mpirun mpiexec; do ln -s "$BFO_BUILDDIR/tools/bfo" "$front/$name"; done
export BFO_CONF=$TEST_TMP/bfo.conf
ours=$BFO_BUILDDIR/pml_bfo/.libs:$BFO_BUILDDIR/btl_openib_failover/.libs
sed "s,[^ ]*:SYS_DEFAULT,$ours:SYS_DEFAULT," "$BFO_BUILDDIR/bfo.conf" >"$BFO_CONF"
grep -q "$ours" "$BFO_CONF" || { cat "$BFO_CONF"; fail "bfo.conf names no directory"; }

# A stand-in for the next mpirun: writes its arguments and its environment.
for name in mpirun mpiexec; do
    cat >"$other/$name" <<'END'
#!/bin/bash
printf '%s\0' "$name" "$@" >"$SEEN.arguments"
env -0 | sort -z >"$SEEN.environment"
END
    sed -i "s/\"\$name\"/$name/" "$other/$name"
    chmod +x "$other/$name"
done
export SEEN=$TEST_TMP/seen
# start PROGRAM ARGUMENTS...: runs the wrapper, with the stand-in next in PATH.
start() {
    rm -f "$SEEN".*
    PATH=$front:$other:$PATH timeout 60 "$@" >"$TEST_TMP/log" 2>&1 </dev/null || { cat "$TEST_TMP/log"; fail "status $? of $*"; }
    tr '\0' '\n' <"$SEEN.arguments" >"$TEST_TMP/arguments"
    printf '%s\n' "${1##*/}" "${@:2}" | cmp -s - "$TEST_TMP/arguments" || { cat "$TEST_TMP/arguments"; fail "other arguments arrive of: $*"; }
    # "_" is the shell's own.
    tr '\0' '\n' <"$SEEN.environment" | grep -v '^_=' >"$TEST_TMP/environment"
}
has() { grep -qx -- "$1" "$TEST_TMP/environment" || { grep MCA "$TEST_TMP/environment"; fail "without $1: $2"; }; }
asks() { start "$@" && has OMPI_MCA_pml=bfo "$*" && has "OMPI_MCA_mca_base_component_path=$ours:SYS_DEFAULT:USER_DEFAULT" "$*"; }
# A job that does not ask for bfo: the environment is the same as without the wrapper.
untouched() {
    start "$@"
    cp "$TEST_TMP/environment" "$TEST_TMP/through"
    PATH=$front:$other:$PATH "$other/${1##*/}" "${@:2}"
    tr '\0' '\n' <"$SEEN.environment" | grep -v '^_=' | diff - "$TEST_TMP/through" || fail "another environment: $*"
}
export OMPI_MCA_pml_bfo_verbose=0 # a variable like any other
asks mpirun --mca pml bfo true
asks mpiexec -np 2 -mca pml bfo true
asks mpirun -n 2 --gmca pml bfo true "an argument" ''
asks mpirun --mca btl self --mca pml bfo,ob1 true
asks mpirun -H node1 -np 1 a b : --map-by slot --mca pml bfo c
asks "$front/mpirun" --mca pml bfo true
OMPI_MCA_pml=bfo asks mpirun -np 1 true
OMPI_MCA_pml=ob1 start mpirun --mca pml bfo true
has "OMPI_MCA_mca_base_component_path=$ours:SYS_DEFAULT:USER_DEFAULT" "the command line counts more than the environment"
untouched mpirun
untouched mpirun --version
untouched mpiexec -np 2 true 'a b' ''
untouched mpirun --mca pml ob1 true
untouched mpirun --mca pml ^bfo true
untouched mpirun --mca pml bfo_else true
untouched mpirun --mca pml
untouched mpirun -np 1 program --mca pml bfo
untouched mpirun -np 1 program : -np 1 program --mca pml bfo
untouched mpirun -x --mca pml bfo
untouched "$front/mpirun" -np 1 true
OMPI_MCA_pml=ob1 untouched mpirun true
OMPI_MCA_pml=bfo untouched mpirun --mca pml ob1 true

# The user's own values override bfo.conf: in the environment, in a file, on the command line (which mpirun itself puts first).
OMPI_MCA_btl=self,tcp OMPI_MCA_mca_base_component_path=/the/users start mpirun --mca pml bfo true
has OMPI_MCA_btl=self,tcp "the environment names btl"
has 'OMPI_MCA_osc=^ucx,rdma' "nobody else names osc"
has "OMPI_MCA_mca_base_component_path=$ours:SYS_DEFAULT:USER_DEFAULT:/the/users" "a directory of the user's"
printf '#osc = sm\nbtl = tcp,self\n' >"$TEST_TMP/tune"
echo '--mca osc sm' >"$TEST_TMP/tune5"
start mpirun --tune "$TEST_TMP/tune" --mca pml bfo true
has 'OMPI_MCA_osc=^ucx,rdma' "a comment of the user's file names osc"
! grep -q '^OMPI_MCA_btl=' "$TEST_TMP/environment" || fail "btl is not left to the user's file"
start mpirun -np 1 --mca pml bfo true : --tune "$TEST_TMP/gone,$TEST_TMP/tune5" true
! grep -q '^OMPI_MCA_osc=' "$TEST_TMP/environment" || fail "osc is not left to the second program's file"

# The options of the installed mpirun, as it lists them: the wrapper skips each option with its values, and stops at the program.
if [[ $OMPI_VERSION = 4.* ]]; then
    options=0
    while read -r names values; do
        IFS='|' read -ra names <<<"$names"
        words=()
        for _ in $values; do words+=(value); done
        for name in "${names[@]}"; do
            options=$((options + 1))
            asks mpirun "$name" "${words[@]}" --mca pml bfo true
            untouched mpirun "$name" "${words[@]}" program --mca pml bfo
        done
    done < <("$REAL/mpirun" --help full 2>/dev/null | sed -nE 's/^ *(-[^ ]+) *((<arg[0-9]> *)*).*/\1 \2/p')
    [ "$options" -gt 100 ] || fail "mpirun lists only $options options"
fi

# refused PATTERN COMMAND...: COMMAND ends with status 3, and prints PATTERN.
refused() {
    local pattern=$1
    shift
    "$@" >"$TEST_TMP/log" 2>&1 </dev/null
    [ $? = 3 ] && grep -q -- "$pattern" "$TEST_TMP/log" || { cat "$TEST_TMP/log"; fail "not said: $pattern"; }
}
refused "^mpirun: mpirun: No such file.* mpirun of Open MPI $OMPI_VERSION, after the directory" env PATH="$front:$TEST_TMP/empty" "$front/mpirun" true
refused "^mpiexec: mpiexec: No such file" env PATH="$front:$TEST_TMP/empty" "$front/mpiexec" --mca pml bfo true
refused "^mpirun: $TEST_TMP/none: No such file.* Install bfo" env PATH="$front:$other" BFO_CONF="$TEST_TMP/none" "$front/mpirun" --mca pml bfo true
# The wrapper is found through another link, stands twice in PATH, or next to another bfo of the same kind: the job reaches the real mpirun.
mkdir "$TEST_TMP/second" "$TEST_TMP/links"
cp "$BFO_BUILDDIR/tools/bfo" "$TEST_TMP/second/mpirun"
ln -s "$front/mpirun" "$TEST_TMP/links/mpirun"
for path in "$TEST_TMP/links:$front" "$front:$TEST_TMP/second:$front" "$TEST_TMP/second:$front:$TEST_TMP/second"; do
    rm -f "$SEEN".*
    PATH=$path:$other:$PATH timeout 20 "${path%%:*}/mpirun" one two || fail "no way through $path"
    [ "$(tr '\0' ' ' <"$SEEN.arguments")" = "mpirun one two " ] || fail "through $path arrives: $(tr '\0' ' ' <"$SEEN.arguments")"
done
rm -f "$SEEN".*
PATH=$front:$other:$PATH "$BFO_BUILDDIR/tools/bfo" run true && [ "$(tr '\0' ' ' <"$SEEN.arguments")" = "mpirun true " ] ||
    fail "bfo run does not go to the mpirun after bfo's own"

# The real mpirun, which must not take the directory of the link for Open MPI's directory on the nodes. No parameter names a BTL, and two
# nodes, which are this machine, exchange messages over both rails.
export PATH=$front:$REAL:$PATH
cat >"$TEST_TMP/agent" <<'AGENT'
#!/bin/bash
node=$1
export TMPDIR=$(dirname "$0")/$1
mkdir -p "$TMPDIR"
shift
[ "$SHARED_MEMORY" = vader ] || exec unshare --uts bash -c "hostname $node; $*"
exec bash -c "$*"
AGENT
chmod +x "$TEST_TMP/agent"
job() { timeout -k 5 "$MPI_TIMEOUT" "$@" >"$TEST_TMP/log" 2>&1 </dev/null; }
two=(--oversubscribe --bind-to none --mca plm_rsh_agent "$TEST_TMP/agent" -H left:1,right:1 -np 2)
job "$SOFTRAIL" run -n 2 --report "$TEST_TMP/report" -- "$front/mpirun" "${two[@]}" --mca pml bfo --mca pml_bfo_verbose 1 "$BFO_BUILDDIR/contrib/bfo_stream" -s 1 ||
    { cat "$TEST_TMP/log"; fail "mpirun --mca pml bfo over software rails"; }
grep -q ' 0 wrong$' "$TEST_TMP/log" && grep -q 'bfo: 0->1 rails 2: sr0:1 sr1:1' "$TEST_TMP/log" || { cat "$TEST_TMP/log"; fail "the job did not use both rails"; }
rails_moved "$TEST_TMP/report" 0 1
# info ARGUMENTS...: the parameters that a process of such a job finds.
info() {
    job mpirun "$@" -np 1 "$OMPI_INFO" --parsable --all || { cat "$TEST_TMP/log"; fail "ompi_info under mpirun $*"; }
    sed -nE 's/^mca:(pml|btl|osc):base:param:(pml|btl|osc):value:/\2 /p; s/^mca:btl:openib:version:"?component:([^"]*)"?/openib \1/p; s/^mca:pml:bfo:version:"?component:([^"]*)"?/bfo \1/p' \
        "$TEST_TMP/log" | sort -u | tr '\n' ' '
}
btl="openib,$SHARED_MEMORY,self"
[ "$(info --mca pml bfo)" = "bfo $BFO_VERSION btl $btl openib $BFO_VERSION osc ^ucx,rdma pml bfo " ] || fail "a job that asks has: $(info --mca pml bfo)"
[ "$(info --mca pml bfo --mca btl tcp,self)" = "bfo $BFO_VERSION btl tcp,self openib $BFO_VERSION osc ^ucx,rdma pml bfo " ] || fail "--mca btl does not count more"
[[ $OMPI_VERSION = 4.* ]] || echo '--mca btl tcp,self' >"$TEST_TMP/tune"
[ "$(info --tune "$TEST_TMP/tune" --mca pml bfo)" = "bfo $BFO_VERSION btl tcp,self openib $BFO_VERSION osc ^ucx,rdma pml bfo " ] ||
    fail "the user's file does not count more: $(info --tune "$TEST_TMP/tune" --mca pml bfo)"
through=$(info)
PATH=$REAL:$PATH
[ "$(info)" = "$through" ] && ! grep -q "pml:bfo:" "$TEST_TMP/log" || fail "a job that does not ask for bfo has: $through"
exit 0
