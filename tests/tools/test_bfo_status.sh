#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A job on two rails, one of them cut: `bfo status` shows the port lost, with cause and time; `bfo events` shows the line; JSON and
# Prometheus agree with softrail. A job that ends removes its files; a job without a directory of figures has none.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
use_components pml btl
need perl perl
need gnuplot gnuplot-nox

"$BFO" status >"$TEST_TMP/out" 2>&1
[ $? = 4 ] && grep -q 'no job' "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "without a job the status is not 4"; }

export SLURM_JOB_ID=4711
start_job 3 2
before=$(date +%s)
until_so "both ports are not up" status_has '^  [^ ]+ +sr1:1 +[0-9]+[GM] +up '
[ "$STATUS" = 0 ] || { cat "$TEST_TMP/out"; fail "all is well, and the status is $STATUS"; }
grep -Eq '^job [0-9]+\.1 \(batch 4711\)   mpi_counters of .*   3 of 3 ranks on ' "$TEST_TMP/out" && grep -q '^  failover: in force$' "$TEST_TMP/out" ||
    { cat "$TEST_TMP/out"; fail "the head of the job"; }
[ "$(stat -c %a "$FIGURES")" = 700 ] && [ "$(find "$FIGURES" -type f -perm 600 | wc -l)" = 5 ] || { ls -la "$FIGURES"; fail "the files are not private"; }

# The bytes of a port, while the processes are stopped, agree with softrail's count. A few fragments are in flight, and softrail counts
# headers and control messages as well.
carried() { json "$TEST_TMP/json" "map { \$_->{$2} } grep { \$_->{port} eq 'sr$1:1' } @{\$j->{jobs}[0]{ports}}"; }
has_carried() { "$BFO" status --json >"$TEST_TMP/json" && [ "$(carried 0 sent_bytes)" -gt 300000000 ] && [ "$(carried 1 received_bytes)" -gt 300000000 ]; }
until_so "the ports carry too little" has_carried
pids=$(json "$TEST_TMP/json" 'join " ", map { $_->{pid} } @{$j->{jobs}[0]{processes}}')
kill -STOP $pids
all_stand() { ! grep -L '^State:.T' $(for pid in $pids; do echo "/proc/$pid/status"; done) | grep -q .; }
until_so "the processes do not stand still" all_stand
"$BFO" status --json >"$TEST_TMP/json"
"$SOFTRAIL" status --fabric "$FABRIC" --json >"$TEST_TMP/rails"
"$BFO" top --count 2 --interval 0.1 --json >"$TEST_TMP/still" || fail "bfo top"
kill -CONT $pids
for rail in 0 1; do
    for way in sent:tx received:rx; do
        here=$(carried $rail "${way%:*}_bytes") there=$(json "$TEST_TMP/rails" "\$j->{rails}[$rail]{${way#*:}_bytes}")
        off=$((here > there ? here - there : there - here))
        [ $((off * 25)) -le "$there" ] || fail "rail $rail: ${way%:*} $here bytes for bfo and $there for softrail"
    done
done
sed -n 2p "$TEST_TMP/still" >"$TEST_TMP/line"
[ "$(json "$TEST_TMP/line" 'join ",", map { $_->{sent_bytes_per_second} } @{$j->{jobs}[0]{ports}}')" = 0,0 ] || { cat "$TEST_TMP/still"; fail "stopped processes carry something"; }
flows() { "$BFO" top 4711 --count 2 --interval 0.2 --json | sed -n 2p >"$TEST_TMP/line" && json "$TEST_TMP/line" 'scalar grep { $_->{sent_bytes_per_second} > 0 && $_->{received_bytes_per_second} > 0 && $_->{messages_per_second} > 0 } @{$j->{jobs}[0]{ports}}' | grep -qx 2; }
until_so "bfo top shows no flow" flows
"$BFO" top --count 2 --interval 0.2 >"$TEST_TMP/out" || fail "bfo top"
[ "$(grep -Ec '^  sr[01]:1 +[0-9]+[GM] +up ' "$TEST_TMP/out")" = 4 ] || { cat "$TEST_TMP/out"; fail "bfo top shows not both ports twice"; }
note "what each port carries: as softrail sees it"

"$SOFTRAIL" down --fabric "$FABRIC" 1 || fail "rail 1 could not be cut"
until_so "the port is not lost" status_has '^  [^ ]+ +sr1:1 +[0-9]+[GM] +lost ' 4711
[ "$STATUS" = 1 ] || { cat "$TEST_TMP/out"; fail "a port is lost, and the status is $STATUS"; }
grep -Eq '^  [^ ]+ +sr0:1 +[0-9]+[GM] +up .* 6/6 +0' "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "the other port is not up"; }
grep -Eq '^  [^ ]+ +sr1:1 .* 0/6 +6  ' "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "not all six rails are lost"; }
grep -q '^  1 port not up, 0 peers given up, 0 waited for, 6 on the last rail; ' "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "the last line"; }

# The same as JSON, compared with softrail's own view.
"$BFO" status 4711 --json >"$TEST_TMP/json" || [ $? = 1 ] || fail "status --json"
"$SOFTRAIL" status --fabric "$FABRIC" --json >"$TEST_TMP/rails"
for rail in 0 1; do
    here=$(json "$TEST_TMP/json" "map { \$_->{state} } grep { \$_->{port} eq 'sr$rail:1' } @{\$j->{jobs}[0]{ports}}")
    there=$(json "$TEST_TMP/rails" "\$j->{rails}[$rail]{state}")
    case $here:$there in up:active | lost:down) ;; *) fail "rail $rail is $there for softrail and $here for bfo" ;; esac
done
since=$(json "$TEST_TMP/json" 'map { $_->{since} } grep { $_->{port} eq "sr1:1" } @{$j->{jobs}[0]{ports}}')
since=$(date -d "${since%.*}${since: -5}" +%s) || fail "no time: $since"
[ "$since" -ge "$before" ] && [ "$since" -le "$(date +%s)" ] || fail "lost since $since, and the test began at $before"
[ "$(json "$TEST_TMP/json" 'scalar grep { $_->{alive} } @{$j->{jobs}[0]{processes}}')" = 3 ] || fail "JSON does not show three processes that live"
cause=$(json "$TEST_TMP/json" 'map { $_->{cause} } grep { $_->{port} eq "sr1:1" } @{$j->{jobs}[0]{ports}}')
[ -n "$cause" ] || fail "the lost port has no cause"

[ "$(carried 1 resent)" = "$(json "$TEST_TMP/json" '$j->{jobs}[0]{resent}')" ] && [ "$(carried 0 resent)" = 0 ] || fail "what was sent again is not put down to the lost port"
[ "$(json "$TEST_TMP/json" 'scalar grep { $_->{port} eq "sr1:1" && $_->{down_seconds} > 0 && $_->{lost_at} =~ /^20/ } @{$j->{jobs}[0]{ports}}')" = 1 ] || fail "no time of the loss"
penalty() { "$BFO" status --json >"$TEST_TMP/json"; [ "$(carried 1 penalty)" -gt 800 ] && [ "$(carried 0 penalty)" = 0 ]; }
until_so "the fall is not held against the port" penalty

# Events: the loss, as text and as JSON.
event() { "$BFO" events --since 1h >"$TEST_TMP/out" 2>&1; grep -Eq -- "$1" "$TEST_TMP/out"; }
until_so "the device's word is no event" event ' port-down sr1:1 \(GUID 0x[0-9a-f]{16}\): up -> lost after [0-9]+\.[0-9]{3} s; cause: the port is down'
grep -Eq '^20[0-9-]+T[0-9:.]+[+-][0-9]{4} job [0-9]+\.1 host [^ ]+ rank [0-2] begun \(and 2 more processes\)$' "$TEST_TMP/out" ||
    { cat "$TEST_TMP/out"; fail "the beginning is not one line"; }
"$BFO" events --json | while read -r line; do echo "$line" >"$TEST_TMP/line"; json "$TEST_TMP/line" '$j->{event}'; done >"$TEST_TMP/kinds"
grep -q '^port-down$' "$TEST_TMP/kinds" || { cat "$TEST_TMP/kinds"; fail "no event in JSON"; }
"$BFO" events --since 2099-01-01 >"$TEST_TMP/out" || fail "events of the future"
[ ! -s "$TEST_TMP/out" ] || fail "--since shows what was before"

"$BFO" status --prometheus >"$TEST_TMP/out"
value() { sed -n "s/^$1{.*$2.*} //p" "$TEST_TMP/out"; }
[ "$(value bfo_port_up 'device="sr1",port="1"')" = 0 ] && [ "$(value bfo_port_up 'device="sr0",port="1"')" = 1 ] &&
    [ "$(value bfo_port_rails_lost_total 'device="sr1"')" = 6 ] && [ "$(value bfo_job_ranks 'batch="4711"')" = 3 ] ||
    { cat "$TEST_TMP/out"; fail "Prometheus"; }
[ "$(value bfo_port_data_transmitted_bytes_total 'device="sr0"')" -gt 300000000 ] && [ "$(value bfo_port_data_received_bytes_total 'device="sr1"')" -gt 300000000 ] &&
    [ "$(value bfo_port_messages_resent_total 'device="sr1"')" = "$(carried 1 resent)" ] && [ "$(value bfo_port_messages_transmitted_total 'device="sr0"')" -gt 1000 ] &&
    [ "$(value bfo_job_peers_waited_for 'batch="4711"')" = 0 ] || { cat "$TEST_TMP/out"; fail "Prometheus: what the ports carry"; }
bad=$(grep -vE '^(# (HELP|TYPE) bfo_[a-z_]+ .+|bfo_[a-z_]+\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\} [0-9.e+-]+)$' "$TEST_TMP/out")
[ -z "$bad" ] || fail "not in the text format: $bad"

"$BFO" events 4711 --follow >"$TEST_TMP/followed" & # it ends with the job
follower=$!
until_so "nothing to follow" grep -q begun "$TEST_TMP/followed"
finish_job
wait $follower || fail "bfo events --follow ended with $?"
[ "$(ls -A "$FIGURES" | tr "\n" " ")" = ".paths .steer " ] || { ls -la "$FIGURES"; fail "a job that ended well left something"; }
note "cut: status, events, JSON and Prometheus say what softrail says"

# Other nodes, through a command that stands for ssh: one answers, one does not, one prints nonsense.
cat >"$TEST_TMP/rsh" <<'X'
#!/bin/sh
host=$1
shift
case $host in
good) exec "$@" ;;
bad) head -c 100000 /dev/urandom ;;
short) "$@" | head -c 20000 ;;
long) yes ;;
*) echo "no route to $host" >&2; exit 255 ;;
esac
X
chmod +x "$TEST_TMP/rsh"
export BFO_RSH=$TEST_TMP/rsh
start_job 2 2
until_so "the other node's ports are not up" status_has '^  [^ ]+ +sr1:1 +[0-9]+[GM] +up ' --hosts good
[ "$STATUS" = 0 ] || fail "all is well on the other node, and the status is $STATUS"
status_has '^bfo: bad: what it said are no figures' --hosts bad,good,gone,short || { cat "$TEST_TMP/out"; fail "nonsense is not refused"; }
[ "$STATUS" = 3 ] && grep -q '^bfo: gone: bfo failed there' "$TEST_TMP/out" && grep -q '^bfo: short: ' "$TEST_TMP/out" && grep -q ' sr1:1 ' "$TEST_TMP/out" ||
    { cat "$TEST_TMP/out"; fail "one node that answers among others is not shown, or the status is $STATUS"; }
for list in '' , a,,b -oProxyCommand=x 'a;b' 'a b'; do
    "$BFO" status --hosts "$list" >"$TEST_TMP/out" 2>&1
    [ $? = 2 ] || { cat "$TEST_TMP/out"; fail "the list '$list' is taken"; }
done
"$BFO" drain --hosts good,gone sr0:1 >"$TEST_TMP/out" 2>&1
[ $? = 3 ] && grep -q '^good: sr0:1 is drained in 2 processes' "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "drain on another node"; }
"$BFO" release --hosts good --json sr0:1 >"$TEST_TMP/json" || fail "release on another node"
[ "$(json "$TEST_TMP/json" '"$j->[0]{host} $j->[0]{status} $j->[0]{output}{done}"')" = "good 0 1" ] || { cat "$TEST_TMP/json"; fail "release of another node in JSON"; }
"$BFO" events --hosts good | grep -q ' port-released sr0:1 ' || fail "no events of the other node"
finish_job
unset BFO_RSH
note "other nodes: asked, steered, and not trusted"

# A rail that comes back is up again, and its losses stay counted.
start_job 2 2 --mca pml_bfo_rejoin 1 --mca btl_openib_rejoin_after 50 --mca btl_openib_time_wait 1
"$SOFTRAIL" down --fabric "$FABRIC" 1 || fail "rail 1 could not be cut"
until_so "the port is not lost" status_has '^  [^ ]+ +sr1:1 +[0-9]+[GM] +lost '
"$SOFTRAIL" up --fabric "$FABRIC" 1 || fail "rail 1 did not return"
until_so "the port is not up again" status_has '^  [^ ]+ +sr1:1 +[0-9]+[GM] +up .* 2/2 +2  '
[ "$STATUS" = 0 ] || { cat "$TEST_TMP/out"; fail "all rails are back, and the status is $STATUS"; }
grep -q ', 0 on the last rail; ' "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "a peer is still on its last rail"; }
# The picture shows both ports, one of them lost for a while. Without gnuplot the command says so.
"$BFO" events --plot "$TEST_TMP/rails.svg" >"$TEST_TMP/out" 2>&1 || { cat "$TEST_TMP/out"; fail "bfo events --plot"; }
grep -q '<svg' "$TEST_TMP/rails.svg" && grep -q 'sr1:1 of [0-9]*\.1' "$TEST_TMP/rails.svg" && [ "$(grep -ci 'd62728\|rgb(214, *39, *40)' "$TEST_TMP/rails.svg")" -ge 2 ] ||
    { head -c 3000 "$TEST_TMP/rails.svg"; fail "the picture does not show the lost port"; }
PATH=$TEST_TMP "$BFO" events --plot "$TEST_TMP/none.svg" >"$TEST_TMP/out" 2>&1
[ $? = 3 ] && grep -q 'none.svg was not drawn: there is no gnuplot in PATH' "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "the lack of gnuplot is not said"; }
event ' rail-back sr1:1 \(GUID 0x[0-9a-f]{16}\) to sr1:1 \(GUID 0x[0-9a-f]{16}\) rank [01] on [^ ]+: lost -> up after [0-9]+\.[0-9]{3} s' ||
    { cat "$TEST_TMP/out"; fail "the return is no event"; }
finish_job
note "back: the port is up again"

# Without any rail the job waits for a peer, and the command says so; then the peer is reachable again.
start_job 2 2 --mca pml_bfo_last_rail_timeout -1 --mca btl_openib_rejoin_after 50 --mca btl_openib_time_wait 1
"$SOFTRAIL" down --fabric "$FABRIC" 0 && "$SOFTRAIL" down --fabric "$FABRIC" 1 || fail "the rails could not be cut"
until_so "nobody is waited for" status_has '^  2 ports not up, 0 peers given up, 2 waited for, '
[ "$STATUS" = 1 ] || fail "a peer is waited for, and the status is $STATUS"
until_so "the wait is no event" event ' rank [01] peer-waits .*rank [01] on '
"$SOFTRAIL" up --fabric "$FABRIC" 0 && "$SOFTRAIL" up --fabric "$FABRIC" 1 || fail "the rails did not return"
until_so "the wait does not end" status_has '^  0 ports not up, 0 peers given up, 0 waited for, 0 on the last rail; '
event ' rank [01] peer-back .*rank [01] on .*: waited for -> reached after [0-9]+\.[0-9]{3} s' || { cat "$TEST_TMP/out"; fail "its end is no event"; }
finish_job
note "no rail: waited for"

# Rank 1 computes outside MPI while a rail is lost and its port returns: the rail stays out, because rank 1 has not ended its work there.
BTL_ARGS=(--mca pml bfo --mca btl openib,self)
begin_stream "-n 2 --retry-time=100ms" 2 --mca btl_openib_rejoin_after 50 --mca btl_openib_time_wait 1 "$BFO_BUILDDIR/tests/tools/mpi_computes" "$TEST_TMP"
await "$LOG" '^computes' || { cat "$LOG"; fail "the job does not begin"; }
used=$("$SOFTRAIL" status --json --fabric "$FABRIC" >"$TEST_TMP/rails"; [ "$(rail_counter "$TEST_TMP/rails" 0 tx_bytes)" -gt "$(rail_counter "$TEST_TMP/rails" 1 tx_bytes)" ] && echo 0 || echo 1)
"$SOFTRAIL" down --fabric "$FABRIC" "$used" || fail "rail $used could not be cut"
asks() { "$BFO" status --json >"$TEST_TMP/json"; [ "$(carried "$used" rails_asking)" = "$1" ]; }
until_so "no rail waits for the process that computes" asks 1
status_has "^  [^ ]+ +sr$used:1 .*; 1 rail waits for the peer\$" || { cat "$TEST_TMP/out"; fail "the line of the port does not say so"; }
"$SOFTRAIL" up --fabric "$FABRIC" "$used" || fail "rail $used did not return"
touch "$TEST_TMP/computed"
until_so "the rail still waits" asks 0
until_so "the port is not up again" status_has "^  [^ ]+ +sr$used:1 +[0-9]+[GM] +up "
touch "$TEST_TMP/end"
passes "the job with a rank that computed"
note "asking: the rail waits for the process that computes"

# Both ranks compute: no packet goes over a rail. What was under way may end first. (Deadline and keepalive as short as they may be.)
rm -f "$TEST_TMP/computed" "$TEST_TMP/end"
begin_stream "-n 2" 2 --mca btl_openib_deadline 40 --mca btl_openib_soft_deadline 10 --mca btl_openib_keepalive 1 "$BFO_BUILDDIR/tests/tools/mpi_computes" "$TEST_TMP" both
await "$LOG" '^computes' 2 || { cat "$LOG"; fail "the job does not begin"; }
traffic() { "$SOFTRAIL" status --json --fabric "$FABRIC" | grep '"tx_'; }
rests() { local before; before=$(traffic) && sleep 3 && [ -n "$before" ] && [ "$(traffic)" = "$before" ]; }
moves() { ! rests; }
for try in $(seq 20); do
    ! rests || break
    [ "$try" -lt 20 ] || { traffic; fail "packets go over the rails, although both ranks compute"; }
done
touch "$TEST_TMP/computed"
until_so "the rails rest, although both ranks exchange messages" moves
touch "$TEST_TMP/end"
passes "the job whose ranks computed"
note "both ranks compute: the rails rest"

# No directory can be written, or the user wants no figures: the job runs as usual.
for dir in none /proc "$TEST_TMP/full"; do
    [ $dir != "$TEST_TMP/full" ] || { mkdir "$dir" && ln -s /dev/full "$dir/bfo-$(id -u)"; }
    OMPI_MCA_pml_bfo_status_dir=$dir start_job 2 2 --mca pml_bfo_verbose 1
    [ "$(ls -A "$FIGURES" | tr "\n" " ")" = ".paths .steer " ] || fail "figures, although the directory is $dir"
    [ $dir = none ] || grep -q 'keeps no figures for the command bfo' "$LOG" || { cat "$LOG"; fail "$dir: nobody says why there are none"; }
    finish_job
done
note "without a directory: the job runs"
exit 0
