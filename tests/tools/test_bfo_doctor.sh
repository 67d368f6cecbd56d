#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# `bfo doctor` on software rails: no problem with two ports; and each check fails when it should: a port down, only one port, memory that
# cannot be locked, no reliable connections, no device, no component, another Open MPI, no help text, times that are too long or wrong, and
# odd programs in place of ompi_info.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
use_components pml btl
need perl perl
unset BFO_STATUS_DIR OMPI_MCA_pml_bfo_status_dir
ulimit -l unlimited 2>/dev/null

# doctor RAILS-ARGUMENTS [-- ARGUMENTS...]: runs bfo doctor over the rails; its output is in `out`, its status in STATUS.
doctor() {
    local rails=$1
    shift
    timeout -k 5 120 "$SOFTRAIL" run $rails -- "$BFO" doctor "$@" >"$TEST_TMP/out" 2>"$TEST_TMP/err" </dev/null
    STATUS=$?
}
# finds STATUS VERDICT TEXT: the last doctor ended with this status, and a finding of this verdict matches TEXT.
finds() {
    [ "$STATUS" = "$1" ] && grep -Eq "^  $2 +.*$3" "$TEST_TMP/out" || { cat "$TEST_TMP/out" "$TEST_TMP/err"; fail "status $STATUS, not $1, or no '$2 $3'"; }
}

# Two ports: no problem. The output of ompi_info is kept in a file, which makes the other cases quick.
"$OMPI_INFO" --parsable --all >"$TEST_TMP/info" 2>/dev/null
doctor "-n 2"
if [ "$PML_BFO$BFO_BTL_FAILOVER" != 11 ]; then
    finds 1 problem 'built without failover'
    exit 0
fi
finds 0 ok 'Open MPI .*: the release that bfo was built for'
finds 0 ok "pml bfo $BFO_VERSION: .*/mca_pml_bfo.so"
finds 0 ok "osc bfo $BFO_VERSION: .*/mca_osc_bfo.so"
finds 0 ok "btl openib $BFO_VERSION: .*/mca_btl_openib.so"
finds 0 ok 'texts of messages: .*/help-pml-bfo.txt'
finds 0 ok 'texts of messages: .*/help-btl-openib-bfo.txt'
finds 0 ok 'sr1:1: active, InfiniBand, [0-9]+G, MTU [0-9]+, GID fe80:.* \(index 0\), P_Key 0xffff'
finds 0 ok 'sr0:1: a job goes on over sr1:1$'
finds 0 ok 'sr1:1: a job goes on over sr0:1$'
finds 0 ok 'librdmacm can start'
finds 0 ok 'used again by its job some 1\.00 s after'
finds 0 ok 'its requests wait for a rail for 300 s'
finds 0 ok 'lost after 3\.76 s \(4\.096 us \* 2\^17 \* \(6 \+ 1\)\)'
grep -q '^0 problems, ' "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "the last line"; }
[ ! -s "$TEST_TMP/err" ] || { cat "$TEST_TMP/err"; fail "something on stderr"; }
note "two ports: well"

# Several nodes, by a command that stands for ssh: each has rails of its own.
cat >"$TEST_TMP/rsh" <<'X'
#!/bin/sh
host=$1
shift
case $host in
two*) exec "$SOFTRAIL" run -n 2 -- "$@" ;;
three) exec "$SOFTRAIL" run -n 3 -- "$@" ;;
one) exec "$SOFTRAIL" run -n 1 -- "$@" ;;
eth) exec "$SOFTRAIL" run -n 2 --link-layer=eth --ipv4-gids -- "$@" ;;
small) "$SOFTRAIL" run -n 2 -- "$@" | sed 's/"mtu": 4096/"mtu": 1024/' ;;
class) OMPI_MCA_btl_openib_ib_traffic_class=106 exec "$SOFTRAIL" run -n 2 --link-layer=eth --ipv4-gids -- "$@" ;;
old) "$SOFTRAIL" run -n 2 -- "$@" | sed 's/"version": "[^"]*"/"version": "0.0.9"/' ;;
*) echo '["no", "findings"]' ;;
esac
X
chmod +x "$TEST_TMP/rsh"
# hosts LIST [ARGUMENTS...]
hosts() {
    BFO_RSH=$TEST_TMP/rsh SOFTRAIL=$SOFTRAIL timeout -k 5 120 "$BFO" doctor --hosts "$@" >"$TEST_TMP/out" 2>"$TEST_TMP/err" </dev/null
    STATUS=$?
}
hosts two,two-b,two-c
finds 0 ok '2 rails join any two of the 3 nodes'
finds 0 ok "bfo $BFO_VERSION on all 3 nodes"
hosts two,three
finds 0 warning '2 rails join two and three; sr2:1 of three has no partner'
hosts two,one
finds 1 problem 'one rail alone joins two and one: its loss is not survived'
hosts eth,two
finds 1 problem 'no rail joins eth and two: their ports have no subnet in common'
hosts two,small
finds 0 warning 'MTU 4096 of sr0:1 on two, and 1024 of sr0:1 on small, in one subnet'
hosts eth,class
finds 0 warning 'traffic class 0 of sr0:1 on eth, and 106 of sr0:1 on class: switches may treat one direction as lossy'
hosts two,old
finds 1 problem "bfo $BFO_VERSION on two, and 0.0.9 on old"
hosts two,mute
finds 1 problem 'bfo doctor says nothing that can be read'
hosts two,one --json
[ "$STATUS" = 1 ] && [ "$(json "$TEST_TMP/out" 'join ",", map { scalar @{$_->{ports}} } @{$j->{nodes}}')" = 2,1 ] || { cat "$TEST_TMP/out"; fail "nodes in JSON"; }
note "several nodes: what joins them"

# Under mpirun: both nodes are heard, without colours on mpirun's terminal, and a problem becomes mpirun's status. mpirun passes a text on in
# pieces of 4 KiB, so the texts of two nodes may be cut in the middle of a line.
timeout -k 5 120 "$SOFTRAIL" run -n 1 -- "$MPIRUN" --oversubscribe -np 2 env TERM=xterm "$BFO" doctor >"$TEST_TMP/out" 2>"$TEST_TMP/err" </dev/null
[ $? = 1 ] && [ "$(grep -o "bfo $BFO_VERSION on " "$TEST_TMP/out" | wc -l)" = 2 ] && [ "$(grep -c '1 problem' "$TEST_TMP/out")" -ge 1 ] && ! grep -q "$(printf '\033')" "$TEST_TMP/out" ||
    { cat "$TEST_TMP/out" "$TEST_TMP/err"; fail "under mpirun"; }

# The same as JSON.
doctor "-n 2 --link-layer=eth --ipv4-gids" --json
[ "$STATUS" = 0 ] || { cat "$TEST_TMP/out"; fail "--json ended with $STATUS"; }
[ "$(json "$TEST_TMP/out" 'join ",", map { "$_->{port} $_->{state} $_->{kind} $_->{gid} " . ($_->{used} ? "used" : "idle") } @{$j->{ports}}')" = \
    "$(json "$TEST_TMP/out" 'join ",", map { "sr$_:1 active RoCE v2 " . $j->{ports}[$_]{gid} . " used" } 0, 1')" ] &&
    [ "$(json "$TEST_TMP/out" 'scalar grep { $_->{gid} =~ /^::ffff:127\.42\./ } @{$j->{ports}}')" = 2 ] || { cat "$TEST_TMP/out"; fail "ports in JSON"; }
[ "$(json "$TEST_TMP/out" 'scalar grep { $_->{verdict} eq "problem" } @{$j->{findings}}')" = 0 ] &&
    [ "$(json "$TEST_TMP/out" 'scalar grep { $_->{verdict} eq "ok" && $_->{group} && $_->{text} } @{$j->{findings}}')" -gt 10 ] || { cat "$TEST_TMP/out"; fail "findings in JSON"; }
"$BFO" doctor one two >"$TEST_TMP/out" 2>&1
[ $? = 2 ] || fail "a word too many is no wrong usage"
note "JSON: the same"

# Ports. An ompi_info that only prints the file makes each case quick; it prints FAKE_SAYS on stderr.
mkdir "$TEST_TMP/bin"
printf '#!/bin/sh\n%s\n' "cat '$TEST_TMP/info'" >"$TEST_TMP/bin/ompi_info"
chmod +x "$TEST_TMP/bin/ompi_info"
PATH=$TEST_TMP/bin:$PATH
# setting NAME VALUE: lets ompi_info report this value of a parameter of the BTL or of the PML.
setting() { sed -i "s/\(:param:$1:value:\).*/\1$2/" "$TEST_TMP/info"; grep -q ":param:$1:value:$2\$" "$TEST_TMP/info" || fail "there is no $1"; }

# doctor_without_sr1 RAILS-ARGUMENTS: the cable of sr1 is pulled.
doctor_without_sr1() {
    timeout -k 5 120 "$SOFTRAIL" run "$@" -- sh -c '"$1" down 1 && exec "$2" doctor' sh "$SOFTRAIL" "$BFO" >"$TEST_TMP/out" 2>"$TEST_TMP/err" </dev/null
    STATUS=$?
}
doctor_without_sr1 -n 2 --link-layer=eth
finds 1 warning 'sr1:1: down, RoCE v2; not used, because it is not active'
finds 1 problem 'sr0:1 is the only port'
doctor_without_sr1 -n 2
finds 1 warning 'sr1:1: down, InfiniBand; not used, because it is down; a job uses it as soon as it is active'
finds 1 problem 'sr0:1 is the only port'
doctor_without_sr1 -n 2 --link-layer=eth --ipv4-gids
finds 1 warning 'sr1:1: down, RoCE v2; not used, because it is down; a job uses it as soon as it is active'
cp "$TEST_TMP/info" "$TEST_TMP/kept"
setting btl_openib_if_include sr0,sr1:1
doctor_without_sr1 -n 2 --link-layer=eth
finds 1 warning 'sr1:1: down, RoCE v2; not used, because it is down; a job uses it as soon as it is active'
cp "$TEST_TMP/kept" "$TEST_TMP/info"
setting pml_bfo_rejoin false
doctor_without_sr1 -n 2
finds 1 warning 'sr1:1: down, InfiniBand; not used, because it is not active'
cp "$TEST_TMP/kept" "$TEST_TMP/info"
doctor_without_sr1 -n 3
finds 0 ok 'sr0:1: a job goes on over sr2:1$'
doctor "-n 1"
finds 1 problem 'sr0:1 is the only port: if it is lost, no rail is left'
doctor "-n 2 --no-rc"
finds 1 warning 'sr1: it has no reliable connections; not used'
finds 1 problem 'no port can be used'
doctor "-n 2 --link-layer=eth"
finds 0 ok 'sr1:1: active, RoCE v2, .*GID '
(ulimit -l 64 && doctor "-n 2 --memlock" && finds 1 problem 'sr1: 256 KiB of memory cannot be locked \(limit: 64 KiB\); not used' &&
    finds 1 problem 'no port can be used' && finds 1 warning 'limit of a process: 64 KiB') || exit 1
for list in "if_exclude sr1" "if_include sr0:1" "max_btls 1"; do
    cp "$TEST_TMP/info" "$TEST_TMP/kept"
    setting "btl_openib_${list% *}" "${list#* }"
    doctor "-n 2"
    finds 1 ok 'sr1:1: active, InfiniBand; not used, because .*(leaves it out|than btl_openib_max_btls)'
    finds 1 problem 'sr0:1 is the only port'
    cp "$TEST_TMP/kept" "$TEST_TMP/info"
done
cp "$TEST_TMP/info" "$TEST_TMP/kept"
setting btl_openib_device_type ib
doctor "-n 2"
finds 0 ok 'sr1:1: active, InfiniBand'
setting btl_openib_device_type iwarp
doctor "-n 2"
finds 1 ok 'sr1:1: active, InfiniBand; not used, because .*leaves it out'
cp "$TEST_TMP/kept" "$TEST_TMP/info"
for wrong in "btl_openib_pkey 5 partition.key" "btl_openib_ib_pkey_index 200 partition.key" "btl_openib_gid_index 200 GID"; do
    set -- $wrong
    cp "$TEST_TMP/info" "$TEST_TMP/kept"
    setting "$1" "$2"
    doctor "-n 2 --link-layer=eth"
    finds 1 warning "not used, because it has no .*$3"
    cp "$TEST_TMP/kept" "$TEST_TMP/info"
done
note "ports: down, one only, without memory, without connections, left out, without a key or a GID"

# Without any rail. (A machine with adapters has devices.)
if [ ! -d /sys/class/infiniband ]; then
    "$BFO" doctor >"$TEST_TMP/out" 2>"$TEST_TMP/err"
    STATUS=$?
    finds 1 problem 'this machine has no RDMA device'
    finds 1 problem 'no port can be used'
    [ -e /dev/infiniband/rdma_cm ] || finds 1 ok 'librdmacm cannot start'
    setting btl_openib_cpc_include rdmacm
    "$BFO" doctor >"$TEST_TMP/out" 2>"$TEST_TMP/err"
    STATUS=$?
    [ -e /dev/infiniband/rdma_cm ] || finds 1 problem 'librdmacm cannot start'
    setting btl_openib_cpc_include ''
fi

# Times.
setting btl_openib_ib_timeout 17
doctor "-n 2"
finds 0 ok 'lost after 3\.76 s'
finds 0 ok 'if another rail to the same process answers, a silent path is lost after 250 ms'
setting btl_openib_ib_timeout 25
setting btl_openib_keepalive 0
setting btl_openib_deadline 0
setting pml_bfo_last_rail_timeout 300
setting pml_bfo_rejoin false
doctor "-n 2"
finds 1 warning 'lost after 962\.07 s'
finds 1 warning 'never asked whether its peer lives'
finds 1 warning 'the adapter alone finds a silent path'
finds 1 ok 'used again by the next job'
finds 1 problem 'the PML refuses pml_bfo_last_rail_timeout 300 without pml_bfo_rejoin'
setting btl_openib_ib_timeout 99
setting btl_openib_ib_retry_count 7
setting btl_openib_keepalive 20
setting btl_openib_deadline 20
setting pml_bfo_rejoin true
doctor "-n 2"
finds 1 problem 'btl_openib_ib_timeout is 99, and may be 0 to 31'
finds 1 warning 'without limit on soft-RoCE'
finds 1 ok 'asked after 20 s'
finds 1 problem 'btl_openib_deadline is 20, and may be 40 to 60000'
finds 1 ok 'used again by its job some 1\.00 s after'
finds 1 ok 'wait for a rail for 300 s'
setting btl_openib_ib_timeout 0
setting btl_openib_ib_retry_count 6
setting btl_openib_deadline 250
note "times: right, too long, wrong"

# The installation.
OMPI_MCA_mca_base_component_path=$TEST_TMP/nowhere doctor "-n 2"
finds 1 problem "the directory of components $TEST_TMP/nowhere cannot be read: no job starts with it"
finds 1 problem "pml bfo: no mca_pml_bfo.so in $TEST_TMP/nowhere"
finds 1 problem 'btl openib: no mca_btl_openib.so in '
cp "$TEST_TMP/info" "$TEST_TMP/kept"
sed -i '/^mca:pml:bfo:version:/d; s/^\(mca:btl:openib:version:"component:\).*/\14.1.4"/; s/^\(ompi:version:full:\).*/\14.1.9/' "$TEST_TMP/info"
doctor "-n 2"
finds 1 problem 'Open MPI 4\.1\.9 in /.*, and bfo was built for '
finds 1 problem 'pml bfo: Open MPI does not take /.*/mca_pml_bfo.so'
finds 1 problem "btl openib: Open MPI takes one of release 4\.1\.4, and this command is of bfo $BFO_VERSION"
cp "$TEST_TMP/kept" "$TEST_TMP/info"
mkdir "$TEST_TMP/bare"
ln -s "$BFO_BUILDDIR"/pml_bfo/.libs/mca_*_bfo.so "$BFO_BUILDDIR"/btl_openib_failover/.libs/mca_btl_openib.so "$TEST_TMP/bare"
OMPI_MCA_mca_base_component_path=$TEST_TMP/bare doctor "-n 2"
finds 0 warning "texts of messages: $TEST_TMP/bare/help/help-pml-bfo.txt cannot be read"
note "installation: missing, refused, of other releases, without texts"

# Odd programs in place of ompi_info: the doctor prints one clear line, and does not crash.
odd() { printf '#!/bin/sh\n%s\n' "$1" >"$TEST_TMP/bin/ompi_info"; doctor "-n 2" --json; [ "$STATUS" = 1 ] || { cat "$TEST_TMP/out" "$TEST_TMP/err"; fail "'$1': status $STATUS"; }; }
complaint() { json "$TEST_TMP/out" 'map { $_->{text} } grep { $_->{group} eq "installation" } @{$j->{findings}}'; }
odd 'exit 3'
[ "$(complaint)" = "ompi_info cannot be run, or says nothing" ] || fail "no output: $(complaint)"
odd 'printf "\033[2J\377 broken\n" >&2; exit 1'
[ "$(complaint)" = "ompi_info cannot be run, or says nothing: ?[2J? broken " ] || fail "odd bytes: $(complaint)"
odd 'kill -SEGV $$'
odd 'head -c 200000 /dev/urandom'
odd 'printf ompi:version:full:; head -c 100000 /dev/zero | tr "\0" x'
odd "sed 's/:value:.*/:value:\"\\xff-1e99999999999999999999/' '$TEST_TMP/info'"
rm "$TEST_TMP/bin/ompi_info"
PATH=$TEST_TMP/bin "$BFO" doctor >"$TEST_TMP/out" 2>"$TEST_TMP/err"
STATUS=$?
finds 1 problem 'ompi_info cannot be run, or says nothing: ompi_info: No such file or directory'
"$BFO" doctor >/dev/full 2>/dev/null
[ $? = 3 ] || fail "a full disk is no trouble"
note "odd things: said"
exit 0
