#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Tests of railfail's own judgement: each operation notices a flipped byte, and messages that are lost, doubled or swapped; made-up jobs (without
# MPI) that hang, abort, report errors or end too early get the right verdict; railfail reports commands that fail or hang, and mends what it has
# cut, also after a signal. Wrong arguments get one error.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
use_components none
cd "$TEST_TMP" || exit 1
RAILFAIL=$BFO_SRCDIR/railfail/railfail

# The real program over shared memory; spawn needs a transport that reaches new processes. These jobs run at the same time as the tests below,
# because a job that railfail ends waits for mpirun.
self_test() {
    local log=$1 btl=$2
    shift 2
    exec timeout -k 30 "$MPI_TIMEOUT" perl "$RAILFAIL" --program "$BFO_BUILDDIR/railfail/railfail_job" --self-test --settle 0.1 \
        --mpirun "$MPIRUN --oversubscribe --bind-to none --mca pml ob1 --mca osc ^ucx --mca btl $btl" "$@" >"$log" 2>&1 </dev/null
}
self_test log1 "$SHARED_MEMORY,self" --operations eager,rendezvous,flood,wildcard,probe,persistent --only '*/flip' --only 'eager/*' --only wildcard/lose --only persistent/drop &
first=$!
self_test log2 "$SHARED_MEMORY,self" --operations types,allreduce,alltoall,rma,threads --only '*/flip' --only allreduce/lose --only allreduce/double --only allreduce/swap --only rma/lose --only rma/double --only alltoall/lose --only types/swap &
second=$!
trap 'kill $first $second 2>/dev/null; wait; rm -rf "$TEST_TMP"' EXIT

# Made-up jobs: job KIND -n 2 PROGRAM OPERATION ...
cat >job <<'END2'
#!/bin/bash
[ "$1" != --version ] || { echo made up; exit; }
[ "$1" != --list ] || { echo "eager 2 made up"; exit; }
echo "RF begin 2 ranks"
[ "$1" != early ] || exit 0
echo "RF windows 1"
case $1 in
hung) exec sleep 600 ;;
aborted) while [ ! -e cut ]; do sleep 0.05; done; echo "it is an error"; exit 7 ;;
killed) while [ ! -e cut ]; do sleep 0.05; done; kill -9 $$ ;;
errors) while [ ! -e cut ]; do sleep 0.05; done; echo "RF error 0 MPI_Send: no way"; echo "RF error 1 MPI_Recv: no way"; exec sleep 600 ;;
one) while [ ! -e cut ]; do sleep 0.05; done; echo "RF error 1 MPI_Recv: no way"; exec sleep 600 ;;
wrong) while [ ! -e cut ]; do sleep 0.05; done; echo "RF wrong 1 lost: message 7 from rank 0"; exec sleep 600 ;;
esac
n=1
while ! read -r -t 0.05 word; do n=$((n + 1)); echo "RF windows $n"; done
for rank in 0 1; do echo "RF end $rank windows $n messages $([ "$1" = empty ] && echo 0 || echo 9) longest 0.1 seconds 1"; done
[ "$1" != finalize ] || exec sleep 600
[ "$1" != late ] || exit 3
END2
chmod +x job
CUT='touch cut; echo down {} >>asked' RESTORE='echo up {} >>asked'
run() {
    local kind=$1
    shift
    rm -f cut asked
    timeout -k 30 "$MPI_TIMEOUT" perl "$RAILFAIL" --program ./job --mpirun "./job $kind" --rails a,b --cut "$CUT" --restore "$RESTORE" --settle 0.1 --only eager/cut "$@" >out 2>&1 </dev/null
}
# verdict KIND WORDS [OPTIONS...]: a made-up job of this kind gets the verdict WORDS, and the cut rail is mended
verdict() {
    local kind=$1 words=$2
    shift 2
    run "$kind" --timeout 30 "$@" || { cat out; fail "made-up job $kind: status $?"; }
    grep -Eq -- "^eager +cut +traffic +$words" out || { cat out; fail "made-up job $kind: not '$words'"; }
    [ ! -e asked ] || tr '\n' ' ' <asked | grep -Eq '^((down a up a )+|up a )$' || { cat asked out; fail "made-up job $kind: the rail was not cut and mended"; }
}
verdict well 'survived .* 18 messages, longest window 0.100 s'
verdict hung 'hung .*nothing for 2 s after 1 windows' --timeout 2
verdict finalize 'hung ' --timeout 2
verdict aborted 'aborted .*status 7: it is an error'
verdict killed 'aborted .*signal 9'
verdict late 'aborted .*status 3'
verdict errors 'error .*2 of 2 ranks: MPI_Send: no way'
verdict one 'error .*1 of 2 ranks: MPI_Recv: no way'
verdict wrong 'wrong data .*rank 1: lost: message 7 from rank 0'
verdict early 'no verdict .*the job ended before the fault: status 0'
verdict empty 'no verdict .*the job verified nothing'
CUT='sleep 600' verdict well "no verdict .*the command 'sleep 600' has not ended within 1 s" --command-timeout 1
CUT='exit 5' verdict well "no verdict .*the command 'exit 5' has failed with status 5"
RESTORE='exit 6' run well && fail "a rail that stays cut is no error"
grep -q "^railfail: rail a MAY STILL BE BROKEN: the command 'exit 6' has failed with status 6" out || { cat out; fail "a rail that stays cut is not reported"; }
verdict well 'survived' --repeat 2 --output results
run well --repeat 3 --output results --resume || { cat out; fail "--resume"; }
[ "$(grep -c '^eager .* messages' out)" = 1 ] && grep -q 'survived 0.1 s (3 of 3)' out || { cat out; fail "--resume does not go on where the file ends"; }
note "made-up jobs get the verdicts that they should"

# After a signal the job ends, and the rail is mended.
rm -f cut asked
perl "$RAILFAIL" --program ./job --mpirun "./job hung" --rails a,b --cut "$CUT" --restore "$RESTORE" --only eager/cut >out 2>&1 </dev/null &
pid=$!
await asked 'down a' || { cat out; fail "nothing was cut"; }
kill -TERM $pid
wait $pid
[ $? = 143 ] && [ "$(tr '\n' ' ' <asked)" = "down a up a " ] || { cat out asked; fail "after a signal the rail was not mended"; }
note "a signal mends the rail"

# refused WORDS ARGUMENTS...: one line, and status 2
refused() {
    local words=$1
    shift
    timeout 60 perl "$RAILFAIL" "$@" >out 2>&1 </dev/null
    [ $? = 2 ] && [ "$(wc -l <out)" = 1 ] && grep -q -- "^railfail: $words" out || { cat out; fail "railfail $*: not '$words'"; }
}
OK=(--program ./job --mpirun ./job --softrail 2)
refused 'which MPI?' --softrail 2
refused 'how are rails cut?' --mpirun mpirun
refused 'how are rails cut?' --mpirun mpirun --rails a,b --cut false
refused "--preset: there is no 'lam'; there are: bfo " --preset lam --softrail 2
refused '--preset and --mpirun exclude' --preset bfo --mpirun mpirun --softrail 2
refused '--softrail makes its own rails' --mpirun mpirun --softrail 2 --rails a,b
refused 'one rail is no spare one' --mpirun mpirun --rails a --cut false --restore false
refused "--rails a;b,c: names" --mpirun mpirun --rails 'a;b,c' --cut false --restore false
refused '--timeout soon: it is a number above 0' --timeout soon "${OK[@]}"
refused '--repeat 1.5: it is a whole number' --repeat 1.5 "${OK[@]}"
refused '--softrail 0: ' --mpirun mpirun --softrail 0
refused "--operations: there is no 'dance'" --operations dance "${OK[@]}"
refused "--faults: there is no 'fire'; there are: none cut " --faults fire "${OK[@]}"
refused "--only eager: it is OPERATION/FAULT" --only eager "${OK[@]}"
refused "--only eager/fire: there is no 'fire'" --only eager/fire "${OK[@]}"
refused '--break fire: there is no such kind' --mpirun mpirun --rails a,b --cut false --restore false --break fire=true
refused '--resume: --output names the file' --resume "${OK[@]}"
refused '--markdown: name files' --markdown
refused 'out: it is no file of results' --markdown out
refused 'Unknown option: fire; --help' --fire
refused "'mpirun' is no option; the words of mpirun are one argument" mpirun
refused "--program nowhere/job: No such file" --program nowhere/job --mpirun mpirun --softrail 2
refused "'false' does not build the program" --mpicc false --mpirun mpirun --softrail 2
refused '--resume: results is of ' --resume --output results "${OK[@]}"
note "wrong arguments are refused"

wait $first && wait $second || { cat log1 log2; fail "a mistake is not noticed"; }
(self_test log3 tcp,self --only spawn/double) || { cat log3; fail "spawn notices no doubled message"; }
[ "$(cat log[123] | grep -c '^ok ')" -ge 25 ] || { cat log[123]; fail "only $(cat log[123] | grep -c '^ok ') mistakes were tried"; }
note "$(cat log[123] | grep -c '^ok ') mistakes are noticed"
exit 0
