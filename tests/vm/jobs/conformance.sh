#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: programs of other authors, on every rail, with node2 as the server. All servers are started at once.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"

# The list: name, then how server and client are called. @R rail, @G GID index, @A address of node2, @P port.
list() {
    local n=100 iters='-n 100'
    cat <<END
rc_pingpong         ibv_rc_pingpong -d rxe@R -g @G -p @P -n $n -c
rc_pingpong_events  ibv_rc_pingpong -d rxe@R -g @G -p @P -n $n -e -c
uc_pingpong         ibv_uc_pingpong -d rxe@R -g @G -p @P -n $n
ud_pingpong         ibv_ud_pingpong -d rxe@R -g @G -p @P -n $n
srq_pingpong        ibv_srq_pingpong -d rxe@R -g @G -p @P -n $n -q 4 -c
send_bw             ib_send_bw -F -d rxe@R -x @G -p @P $iters -s 16384
send_lat            ib_send_lat -F -d rxe@R -x @G -p @P $iters
write_bw            ib_write_bw -F -d rxe@R -x @G -p @P $iters -s 16384
write_lat           ib_write_lat -F -d rxe@R -x @G -p @P $iters
read_bw             ib_read_bw -F -d rxe@R -x @G -p @P $iters -s 16384
atomic_bw           ib_atomic_bw -F -d rxe@R -x @G -p @P $iters
rping               rping -a @A -p @P -C 20 -v
ucmatose            ucmatose -p @P -C 10
END
}

calls() { # calls NODE RAIL server|client: the command lines of that side, as "NAME PORT COMMAND"
    local gid port=$((18600 + $2 * 100)) name words
    gid=$(gid_index "$1" "$2") || { echo "no GID" >&2; return 1; }
    list | while read -r name words; do
        port=$((port + 1))
        words=${words//@R/$2}
        words=${words//@G/$gid}
        words=${words//@A/10.77.$2.2}
        words=${words//@P/$port}
        case $name-$3 in
        rping-server) words="${words/rping/rping -s}" ;;
        rping-client) words="${words/rping/rping -c}" ;;
        ucmatose-server) words="$words -b 10.77.$2.2" ;;
        ucmatose-client) words="$words -s 10.77.$2.2" ;;
        *-client) words="$words 10.77.$2.2" ;;
        esac
        echo "$name $port $words"
    done
}

servers() {
    local rail
    for ((rail = 0; rail < BFO_VM_RAILS; rail++)); do
        calls node2 "$rail" server | while read -r name port words; do
            echo "timeout 600 $words >$BFO_VM_OUT/server-$rail-$name.log 2>&1 </dev/null &"
        done
    done
    # Servers that listen through librdmacm are not in the list of TCP listeners.
    echo "for i in \$(seq 300); do [ \$(ss -Hltn 'sport >= 18600 and sport <= 18999' | wc -l) -ge $((11 * BFO_VM_RAILS)) ] && exit 0; sleep 0.1; done; exit 1"
}

one_rail() {
    local rail=$1 name port words log before after
    while read -r name port words <&5; do
        log=$BFO_VM_OUT/client-$rail-$name.log
        before=$(packets node1 "$rail")
        if ! timeout 120 $words >"$log" 2>&1 </dev/null; then
            fail "rail $rail $name: $words: $(tail -n 3 "$log" | tr '\n' '|')"
            continue
        fi
        after=$(packets node1 "$rail")
        if [ "$after" -gt "$before" ]; then pass "rail $rail $name"; else fail "rail $rail $name sent nothing on it"; fi
    done 5< <(calls node1 "$rail" client)
}

ssh node2 "ulimit -l unlimited; bash -s" <<<"$(servers)" || fail "not all servers listen"
for ((rail = 0; rail < BFO_VM_RAILS; rail++)); do
    one_rail "$rail"
done
finish
