# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Verbs that break the rails between the machines. Source it in a job script (. "$BFO_VM_FAULTS") or, while the
# machines run, on the host (run.sh --host-script). Each verb verifies its effect before it returns; without an effect it
# returns 1 and prints one line on stderr. NODE is node1..node3, RAIL 0..2. DESIGN.txt 17.

# run.sh --list prints the lines with "#:".
#: rail_down NODE RAIL                 the link goes down (ip link set down): PORT_ERR at NODE, nothing at its peers
#: rail_up NODE RAIL                   and up again: PORT_ACTIVE
#: carrier_pull NODE RAIL              the cable is pulled out
#: carrier_push NODE RAIL              and put in again
#: loss NODE RAIL in|out|both PERCENT  packets of that direction vanish; 0 ends it
#: drop_acks NODE RAIL                 acknowledgements to NODE vanish: delivered, but its sends end in errors
#: pass_acks NODE RAIL                 ends drop_acks
#: rate RAIL MBIT                      each machine sends at most MBIT Mbit/s on this rail; 0 ends it
#: address_del NODE RAIL               the IP address goes, and with it the GID
#: address_add NODE RAIL               and comes back, perhaps at another GID index
#: pause NODE SECONDS                  the whole machine stands still; returns when it does
#: kill_rank RANK [SIGNAL]             kills that rank of the MPI job (KILL), wherever it runs
#: flap NODE RAIL|all SECONDS link|path  the link goes down, or packets to NODE vanish, for so long (0.4 will do)
#: swallowed NODE                      prints how many packets of programs (TCP, UDP) the faults there have dropped since heal
#: heal                                ends every fault of every machine and rail

# ---- how a command reaches a machine --------------------------------------------------------------------
# node_run NODE COMMAND: runs a short bash command on NODE: from the host over the machine's console port, from a machine
# over ssh.
node_run() {
    if [ -n "${VM_DIR:-}" ]; then
        vm_node_run "$1" "$2"
    elif [ "$1" = "node$BFO_VM_NODE" ]; then
        bash -c "$2" </dev/null
    else
        timeout 60 ssh "$1" "bash -s" <<<"$2"
    fi
}

# host_request WORDS...: sends a request to the host; prints the answer, returns 1 unless the answer is ok.
host_request() {
    local answer path
    if [ -n "${VM_DIR:-}" ]; then
        answer=$(vm_request "$@")
    else
        for path in /sys/class/virtio-ports/*; do
            [ -e "$path/name" ] && read -r answer <"$path/name" && [ "$answer" = bfo.ctl ] && break
        done
        exec 7>>/run/bfo-ctl.lock
        flock -w 400 7
        exec 8<>"/dev/${path##*/}"
        echo "$*" >&8
        read -r -t 400 answer <&8 || answer="no answer from the host"
        exec 8>&- 7>&-
    fi
    [ "$answer" = ok ] && return 0
    echo "host: $answer" >&2
    return 1
}

fault_failed() { echo "${FUNCNAME[1]}: $*" >&2; return 1; }

# node_wait NODE SECONDS CONDITION: waits until CONDITION holds on NODE.
node_wait() {
    node_run "$1" "for ((i = 0; i < $2 * 10; i++)); do { $3; } >/dev/null 2>&1 && exit 0; sleep 0.1; done; exit 1"
}

fault_args() {
    [[ $1 =~ ^node[1-3]$ && ${1#node} -le $BFO_VM_NODES ]] || { echo "${FUNCNAME[1]}: no machine called $1" >&2; return 1; }
    [[ $2 =~ ^[0-2]$ && $2 -lt $BFO_VM_RAILS ]] || { echo "${FUNCNAME[1]}: no rail $2" >&2; return 1; }
}

port_is() { echo "grep -q '$2' /sys/class/infiniband/rxe$1/ports/1/state"; }

# ---- links -----------------------------------------------------------------------------------------------
rail_down() {
    fault_args "$@" || return 1
    node_run "$1" "ip link set eth$2 down" || return 1
    node_wait "$1" 5 "$(port_is "$2" DOWN)" || fault_failed "port of rail $2 at $1 does not go down"
}

rail_up() {
    fault_args "$@" || return 1
    node_run "$1" "ip link set eth$2 up" || return 1
    node_wait "$1" 5 "$(port_is "$2" ACTIVE)" || fault_failed "port of rail $2 at $1 does not become active"
}

carrier_pull() {
    fault_args "$@" || return 1
    host_request link "$1" "$2" off || return 1
    node_wait "$1" 5 "[ \$(cat /sys/class/net/eth$2/carrier) = 0 ]" || fault_failed "$1 still sees the carrier of rail $2"
}

carrier_push() {
    fault_args "$@" || return 1
    host_request link "$1" "$2" on || return 1
    node_wait "$1" 5 "[ \$(cat /sys/class/net/eth$2/carrier) = 1 ] && $(port_is "$2" ACTIVE)" ||
        fault_failed "$1 does not see the carrier of rail $2"
}

# A rule that drops packets jumps to this chain, which counts packets of programs, but not the datagrams that test whether the rule drops.
nft_sink='chain sink { meta l4proto { tcp, udp } th dport != 9 counter drop comment "swallowed"; drop; }'
nft_swallowed='nft list ruleset | sed -n "s/.*counter packets \\([0-9]*\\).*swallowed.*/\\1/p"'

# One command cuts, waits, checks that the link was cut, and heals, because a short flap would be over before a second command arrives. An
# element of a set that the kernel itself lets expire cuts a path; therefore a slow machine does not make the flap longer.
flap() {
    local cut ms rail rails=${2:--} elements= whole=true
    [ "$2" != all ] || rails=$(seq -s ' ' 0 $((BFO_VM_RAILS - 1)))
    ms=$(awk "BEGIN { printf \"%d\", $3 * 1000 }")
    for rail in $rails; do
        fault_args "$1" "$rail" || return 1
        whole="$whole && $(port_is "$rail" ACTIVE)"
        elements="$elements${elements:+, }\"eth$rail\" timeout ${ms}ms"
    done
    case $4 in
    link)
        # shellcheck disable=SC2016
        cut="for r in $rails; do ip link set eth\$r down; done; sleep $3; bad=0
            for r in $rails; do $(port_is '$r' DOWN) || bad=1; done; for r in $rails; do ip link set eth\$r up; done; exit \$bad"
        ;;
    path)
        cut="nft -f - <<END || exit 1
table inet bfo_flap {
    set cut { type ifname; flags timeout; elements = { $elements }; }
    $nft_sink
    chain c { type filter hook input priority 0; policy accept; iifname @cut goto sink; }
}
END
            nft list set inet bfo_flap cut | grep -q expires; bad=\$?
            sleep $3; sleep 0.05
            nft list chain inet bfo_flap sink | grep -q 'packets [1-9]' && bad=0
            $nft_swallowed >>/run/bfo-swallowed
            nft delete table inet bfo_flap; exit \$bad"
        ;;
    *) fault_failed "a flap is of the link or the path, not of $4"; return 1 ;;
    esac
    node_run "$1" "$cut" || { fault_failed "rail $2 of $1 was not cut"; return 1; }
    node_wait "$1" 5 "$whole && ! nft list table inet bfo_flap" || fault_failed "rail $2 of $1 does not come back"
}

# ---- packets ---------------------------------------------------------------------------------------------
# Outgoing packets: one netem queue per rail implements loss and rate; /run/bfo-egress-RAIL stores "LOSS RATE".
egress() {
    local set=
    [ "$3" = - ] || set="loss=$3;"
    [ "$4" = - ] || set="${set}rate=$4;"
    node_run "$1" "loss=0; rate=0; f=/run/bfo-egress-$2; [ -e \$f ] && read -r loss rate <\$f; $set echo \$loss \$rate >\$f
        tc qdisc del dev eth$2 root 2>/dev/null
        [ \$loss = 0 ] && [ \$rate = 0 ] && exit 0
        set -- limit 20000; [ \$loss = 0 ] || set -- \"\$@\" loss \$loss%; [ \$rate = 0 ] || set -- \"\$@\" rate \${rate}mbit
        tc qdisc add dev eth$2 root netem \"\$@\""
}

loss_in() {
    local share="numgen random mod 100 < $3"
    [ "$3" = 100 ] && share= # nft accepts only less than 100 here
    node_run "$1" "nft delete table inet bfo_in_$2 2>/dev/null; [ $3 = 0 ] && exit 0
        nft -f - <<END
table inet bfo_in_$2 {
    $nft_sink
    chain c {
        type filter hook input priority 0; policy accept;
        iifname eth$2 $share goto sink
    }
}
END"
}

loss() {
    fault_args "$@" || return 1
    [[ $4 =~ ^[0-9]+$ && $4 -le 100 ]] || { fault_failed "$4 is no percentage"; return 1; }
    case $3 in
    in) loss_in "$1" "$2" "$4" ;;
    out) egress "$1" "$2" "$4" - ;;
    both) loss_in "$1" "$2" "$4" && egress "$1" "$2" "$4" - ;;
    *) fault_failed "direction is in, out or both, not $3" ;;
    esac || return 1
    loss_verify "$1" "$2" "$3" "$4" || fault_failed "rail $2 of $1 does not lose $4 % $3"
}

# A loss of 0 or 100 is tested with datagrams that the receiver counts; for a share in between the rule is read back.
loss_verify() {
    local peer=node1 dir
    [ "$1" = node1 ] && peer=node2
    for dir in in out; do
        [ "$3" = both ] || [ "$3" = "$dir" ] || continue
        if [ "$4" != 0 ] && [ "$4" != 100 ]; then
            case $dir in
            in) node_run "$1" "nft list table inet bfo_in_$2 | grep -Eq 'mod 100 < $4( |$)'" ;;
            out) node_run "$1" "tc qdisc show dev eth$2 | grep -q 'netem.* loss $4%'" ;;
            esac || return 1
        elif [ "$dir" = in ]; then
            datagrams_arrive "$peer" "$1" "$2" "$4" || return 1
        else
            datagrams_arrive "$1" "$peer" "$2" "$4" || return 1
        fi
    done
}

# datagrams_arrive FROM TO RAIL LOSS: sends datagrams to a closed UDP port, where the receiver's kernel counts them. With a loss of
# 100 none may arrive; with 0 some must, unless another fault has broken the link itself.
datagrams_arrive() {
    local before after count="nstat -asz UdpNoPorts 2>/dev/null | awk '/UdpNoPorts/ {print \$2}'"
    node_run "$1" "[ \$(cat /sys/class/net/eth$3/carrier 2>/dev/null || echo 0) = 1 ]" || return 0
    node_run "$2" "[ \$(cat /sys/class/net/eth$3/carrier 2>/dev/null || echo 0) = 1 ]" || return 0
    before=$(node_run "$2" "$count")
    node_run "$1" "for i in 1 2 3 4 5; do echo x >/dev/udp/10.77.$3.${2#node}/9; sleep 0.05; done; sleep 0.2" 2>/dev/null
    after=$(node_run "$2" "$count")
    if [ "$4" = 100 ]; then [ "$after" -eq "$before" ]; else [ "$after" -gt "$before" ]; fi
}

drop_acks() {
    local peer=node1 count
    fault_args "$@" || return 1
    [ "$1" = node1 ] && peer=node2
    node_run "$1" "nft delete table inet bfo_ack_$2 2>/dev/null
        nft -f - <<END
table inet bfo_ack_$2 {
    chain c {
        type filter hook input priority 0; policy accept;
        iifname eth$2 udp dport 4791 @th,64,8 0x11 @th,104,24 0 counter drop comment \"forged\"
        iifname eth$2 udp dport 4791 @th,64,8 0x11 counter drop comment \"swallowed\"
    }
}
END" || return 1
    # A forged acknowledgement that belongs to no queue pair (opcode 0x11): the rules must have counted it.
    for count in 1 2 3 4 5; do
        node_run "$peer" "printf '\\x11\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0' >/dev/udp/10.77.$2.${1#node}/4791"
        node_wait "$1" 1 "nft list table inet bfo_ack_$2 | grep -q 'packets [1-9].*forged'" && return 0
    done
    fault_failed "acknowledgements still reach rail $2 of $1"
}

pass_acks() {
    fault_args "$@" || return 1
    node_run "$1" "nft delete table inet bfo_ack_$2 2>/dev/null; ! nft list table inet bfo_ack_$2 2>/dev/null" >&2 ||
        fault_failed "the filter of rail $2 at $1 stays"
}

swallowed() {
    fault_args "$1" 0 || return 1
    node_run "$1" "{ cat /run/bfo-swallowed; $nft_swallowed; } 2>/dev/null | awk '{ n += \$1 } END { print n + 0 }'"
}

rate() {
    local n
    fault_args node1 "$1" || return 1
    [[ $2 =~ ^[0-9]+$ ]] || { fault_failed "$2 is no number of Mbit/s"; return 1; }
    for ((n = 1; n <= BFO_VM_NODES; n++)); do
        egress "node$n" "$1" - "$2" || return 1
        if [ "$2" = 0 ]; then
            node_run "node$n" "! tc qdisc show dev eth$1 | grep -q 'netem.* rate '"
        else
            node_run "node$n" "tc qdisc show dev eth$1 | grep -q 'netem.* rate $2Mbit'"
        fi || { fault_failed "no limit of $2 Mbit/s at node$n rail $1"; return 1; }
    done
}

# ---- addresses -------------------------------------------------------------------------------------------
gid_grep() { printf 'grep -qi "ffff:0a4d:%02x%02x$" /sys/class/infiniband/rxe%d/ports/1/gids/*' "$2" "${1#node}" "$2"; }

address_del() {
    fault_args "$@" || return 1
    node_run "$1" "ip addr del 10.77.$2.${1#node}/24 dev eth$2" || return 1
    node_wait "$1" 5 "! $(gid_grep "$1" "$2")" || fault_failed "$1 still has the GID of rail $2"
}

address_add() {
    fault_args "$@" || return 1
    node_run "$1" "ip addr add 10.77.$2.${1#node}/24 dev eth$2" || return 1
    node_wait "$1" 5 "$(gid_grep "$1" "$2")" || fault_failed "$1 has no GID for rail $2"
}

# ---- machines and ranks ----------------------------------------------------------------------------------
pause() {
    fault_args "$1" 0 || return 1
    [[ $2 =~ ^[0-9]+$ && $2 -ge 1 && $2 -le 300 ]] || { fault_failed "$2 is no number of seconds from 1 to 300"; return 1; }
    [ -z "${BFO_VM_OUT:-}" ] || echo "$2" >>"$BFO_VM_OUT/.paused" # the witness subtracts this time, therefore it is no excuse
    host_request pause "$1" "$2"
}

kill_rank() {
    local n found=
    [[ $1 =~ ^[0-9]+$ ]] || { fault_failed "$1 is no rank"; return 1; }
    for ((n = 1; n <= BFO_VM_NODES; n++)); do
        found=$(node_run "node$n" "for p in \$(grep -slzx 'OMPI_COMM_WORLD_RANK=$1\|PMI_RANK=$1' /proc/[0-9]*/environ); do
            p=\${p%/environ}; p=\${p#/proc/}; kill -${2:-KILL} \$p 2>/dev/null && echo \$p; done") || return 1
        [ -z "$found" ] && continue
        found=$(echo $found)
        [ "${2:-KILL}" = KILL ] || return 0
        node_wait "node$n" 5 "! { for p in $found; do sed 's|.*) ||' /proc/\$p/stat; done | grep -q '^[^Z]'; }" ||
            fault_failed "process $found of rank $1 on node$n lives on"
        return
    done
    fault_failed "no process of rank $1 on any machine"
}

heal() {
    local n r bad=0 well rails
    for ((n = 1; n <= BFO_VM_NODES; n++)); do
        well=true rails=
        for ((r = 0; r < BFO_VM_RAILS; r++)); do
            host_request link "node$n" "$r" on || bad=1
            rails="$rails tc qdisc del dev eth$r root; rm -f /run/bfo-egress-$r; ip link set eth$r up; ip addr add 10.77.$r.$n/24 dev eth$r;"
            well="$well && $(port_is "$r" ACTIVE) && $(gid_grep "node$n" "$r")"
        done
        node_run "node$n" "{ nft flush ruleset; rm -f /run/bfo-swallowed; $rails true; } >/dev/null 2>&1" || bad=1
        node_wait "node$n" 10 "$well" || { fault_failed "the rails of node$n are not well"; bad=1; }
    done
    return $bad
}
