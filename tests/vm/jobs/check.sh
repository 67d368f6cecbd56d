#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: `bfo check` cuts both RoCE v2 rails of this machine, one after the other, with contrib/cut_link.pl, as an administrator of a
# cluster would. The kernel's counters show that each rail carried its part, the kernel's event that the port went down; both ports are up at
# the end.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"
export BFO_CONF=$BFO_VM_OUT/bfo.conf PATH=${MPIRUN%/*}:$BFO_BUILDDIR/contrib:$PATH
sed "s,[^ ]*:SYS_DEFAULT,$VM_COMPONENTS:SYS_DEFAULT," "$BFO_BUILDDIR/bfo.conf" >"$BFO_CONF"

for rail in 0 1; do
    before[rail]=$(packets node1 $rail)
done
"$BFO_BUILDDIR/tools/bfo" check --cut "$BFO_SRCDIR/contrib/cut_link.pl" --yes --down 2 --up 1 --log "$BFO_VM_OUT/check.log" -- \
    --bind-to none -np 2 -H node1,node2 --mca btl openib,self --mca btl_openib_ib_timeout 16 >"$BFO_VM_OUT/report" 2>"$BFO_VM_OUT/said" </dev/null
check "bfo check ends with 0" [ $? = 0 ]
for rail in 0 1; do
    sent=$(($(packets node1 $rail) - before[rail]))
    check "rxe$rail:1 survived" grep -Eq "^  rxe$rail:1 +survived .* up\$" "$BFO_VM_OUT/report"
    check "rail $rail carried its part ($sent packets)" [ $sent -gt 1000 ]
    check "the kernel said that rxe$rail:1 is down" grep -q "A rail was lost: .* from rxe$rail:1 .* cause: the port is down" "$BFO_VM_OUT/check.log"
    check "eth$rail is up" grep -q ACTIVE "/sys/class/infiniband/rxe$rail/ports/1/state"
done
check "no byte was wrong" grep -q 'MiB verified, 0 wrong' "$BFO_VM_OUT/report"
"$BFO_SRCDIR/contrib/cut_link.pl" down rxe9:1 >"$BFO_VM_OUT/none" 2>&1
check "there is no port rxe9:1" [ $? = 1 ]
ip route add default via 10.77.1.2 dev eth1
"$BFO_SRCDIR/contrib/cut_link.pl" down rxe1:1 >"$BFO_VM_OUT/default" 2>&1
check "the interface of a default route is not cut" [ $? = 1 ]
check "and stays up" grep -q ACTIVE /sys/class/infiniband/rxe1/ports/1/state
finish
