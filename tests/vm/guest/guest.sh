#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# First process of a machine after its root is mounted: sets up networks, rxe rails and ssh between the machines, and then
# serves the host's commands, one line each, until the machine ends. Starts the job only on request. DESIGN.txt 17.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=linux
share=/run/bfo-vm
. $share/config # BFO_VM_NODES BFO_VM_RAILS
node=$(sed -n 's/.*bfo\.node=\([0-9]\).*/\1/p' /proc/cmdline)

say() { echo "bfo-vm: node$node: $*" >/dev/console; }

file_systems() {
    mkdir -p /dev/pts /dev/shm
    mount -t devpts -o ptmxmode=666 devpts /dev/pts
    mount -t tmpfs tmpfs /dev/shm
    mount -t tmpfs -o mode=700 tmpfs /root
    ln -sf /proc/self/fd /dev/fd
    mkdir -p /run/lock /var/run
}

# link_of MAC NAME: gives the network interface with this address this name.
link_of() {
    local path address
    for path in /sys/class/net/*; do
        read -r address <"$path/address"
        [ "$address" = "$1" ] || continue
        [ "${path##*/}" = "$2" ] || ip link set "${path##*/}" name "$2"
        return 0
    done
    return 1
}

networks() {
    local rail n=0 path
    echo "127.0.0.1 localhost" >/etc/hosts
    for ((n = 1; n <= BFO_VM_NODES; n++)); do
        echo "10.77.100.$n node$n" >>/etc/hosts
    done
    hostname "node$node"
    n=0
    for path in /sys/class/net/*; do # free the names first
        [ "${path##*/}" = lo ] || ip link set "${path##*/}" name "tmp$((n++))"
    done
    link_of "52:54:00:77:63:0$node" mgmt || say "no management interface"
    ip link set lo up
    ip addr add "10.77.100.$node/24" dev mgmt
    ip link set mgmt up
    for ((rail = 0; rail < BFO_VM_RAILS; rail++)); do
        # The rail is a layer above the card: the card continues to take packets when the rail is set down. (Otherwise QEMU
        # would hold the packets back, and with them the sender's queue pairs.)
        link_of "52:54:00:77:0$rail:0$node" "card$rail" || say "no interface for rail $rail"
        echo 1 >"/proc/sys/net/ipv6/conf/card$rail/disable_ipv6" # the rail has the same address
        ip link set "card$rail" up
        ip link add link "card$rail" name "eth$rail" type macvlan mode passthru
        ip addr add "10.77.$rail.$node/24" dev "eth$rail"
        ip link set "eth$rail" up
        rdma link add "rxe$rail" type rxe netdev "eth$rail" || say "cannot make rxe$rail"
    done
}

secure_shell() {
    mkdir -p /root/.ssh
    cp $share/keys/id_ed25519 $share/keys/authorized_keys /root/.ssh/
    cat >/root/.ssh/config <<END
Host *
    User root
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
    ControlMaster auto
    ControlPersist 900
    ControlPath /run/ssh-%h
END
    chmod -R go= /root/.ssh
    dropbear -E -r $share/keys/host -p "10.77.100.$node:22" 2>/run/dropbear.log || say "no ssh server"
}

# port NAME: the virtio console with this name.
port() {
    local path name
    for path in /sys/class/virtio-ports/*; do
        [ -e "$path/name" ] && read -r name <"$path/name" || continue
        [ "$name" = "$1" ] && { echo "/dev/${path##*/}"; return 0; }
    done
    return 1
}

# witness: about once a second tries a connection to each other machine over the management network, and writes a line of ms for each
# time that the refusal is half a second or more late. A fault of a rail does not delay it; a machine that gets no processor does.
# A pause that the test itself has made (.paused, in seconds) is subtracted from the first late answer after it.
witness() {
    local n begin late paused known=0
    exec 3>&- 7<> <(:)
    while :; do
        for ((n = 2; n <= BFO_VM_NODES; n++)); do
            begin=${EPOCHREALTIME/./}
            : 2>/dev/null 8<>"/dev/tcp/10.77.100.$n/9"
            read -r -t 1 <&7
            late=$(((${EPOCHREALTIME/./} - begin) / 1000 - 1000))
            [ $late -ge 500 ] || continue
            paused=$(cat $share/out/.paused 2>/dev/null | awk '{ n += $1 * 1000 } END { print n + 0 }')
            late=$((late - paused + known)) known=$paused
            [ $late -lt 500 ] || echo $late >>$share/out/.stood_still
        done
    done
}

start_job() {
    local status
    local n
    for ((n = 1; n <= BFO_VM_NODES; n++)); do # one connection per machine, before the job needs it
        [ "$n" = "$node" ] || ssh -fNT "node$n" &
    done
    wait
    witness &
    (
        cd / || exit 1
        exec 3>&- </dev/null >"$(port bfo.out)" 2>"$(port bfo.err)"
        setsid bash $share/job.sh
        status=$?
        exec >&- 2>&-
        . $share/faults.sh
        host_request done $status
    ) &
}

start_shell() {
    local status
    (
        exec 3>&-
        setsid -c bash $share/job.sh </dev/hvc0 >/dev/hvc0 2>&1
        status=$?
        . $share/faults.sh
        host_request done $status
    ) &
}

# Commands come as one line of base64, answers go back as "STATUS BASE64".
serve() {
    local line out status
    while read -r line <&3; do
        case $line in
        job) start_job; out= status=0 ;;
        shell) start_shell; out= status=0 ;;
        *)
            out=$(base64 -d <<<"$line" | BFO_VM_NODE=$node bash 2>&1 3>&-)
            status=$?
            ;;
        esac
        printf '%s %s\n' "$status" "$(printf '%s' "$out" | base64 -w0)" >&3
    done
}

file_systems
networks
secure_shell
export BFO_VM_NODE=$node
exec 3<>"$(port bfo.cmd)"
. $share/faults.sh
host_request ready
while :; do
    serve
    sleep 1
done
