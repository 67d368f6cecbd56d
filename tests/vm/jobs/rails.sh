# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What the job scripts share: reports, GIDs by value, packet counters, waiting. Sourced inside a machine.
. "$BFO_VM_FAULTS"
bad=0
pass() { echo "  ok: $* [$SECONDS s]"; }
fail() { echo "  FAIL: $* [$SECONDS s]"; bad=$((bad + 1)); }
check() { local what=$1; shift; if "$@"; then pass "$what"; else fail "$what ($*)"; fi; }
finish() { [ "$bad" = 0 ] || echo "$bad failed"; [ "$bad" = 0 ]; exit; }

# stand_stills: how often the witness (guest.sh) saw a machine stand still. stood_still N: the longest of these times in ms after the first N.
stand_stills() { cat "$BFO_VM_OUT/.stood_still" 2>/dev/null | wc -l; }
stood_still() { tail -n +$(($1 + 1)) "$BFO_VM_OUT/.stood_still" 2>/dev/null | sort -n | tail -n 1 | grep . || echo 0; }

# rail_counters: prints the kernel's counters of each rail on every machine, except counters that are 0.
rail_counters() {
    local node
    for node in $(seq -f node%g "$BFO_VM_NODES"); do
        node_run $node "cd /sys/class/infiniband && for r in rxe*; do
            echo $node \$r: \$(cd \$r/ports/1/hw_counters && grep . * | grep -v ':0$') \
                \$(cd /sys/class/net/eth\${r#rxe}/statistics && grep . *errors *dropped | grep -v ':0$'); done"
    done
}

# gid_index NODE RAIL: the present index of the GID that is made of the rail's IPv4 address.
gid_index() {
    node_run "$1" "cd /sys/class/infiniband/rxe$2/ports/1/gids && for g in *; do
        read -r v <\$g; case \$v in *:ffff:0a4d:*) [ \"\$(cat ../gid_attrs/types/\$g)\" = 'RoCE v2' ] && echo \$g && exit 0;; esac; done; exit 1"
}

# packets NODE RAIL: how many packets the rail has sent so far.
packets() { node_run "$1" "cat /sys/class/infiniband/rxe$2/ports/1/hw_counters/sent_pkts"; }

# wait_for SECONDS COMMAND...: waits until COMMAND succeeds.
wait_for() {
    local end=$((SECONDS + $1))
    shift
    while ! "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}

# start_on NODE LOG COMMAND: starts COMMAND on NODE and returns; its output goes to LOG, which is best in $BFO_VM_OUT.
start_on() { node_run "$1" "ulimit -l unlimited; nohup $3 >$2 2>&1 </dev/null & exit 0"; }
