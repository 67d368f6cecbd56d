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

# interfaces: renames the network cards by their addresses; prints the commands of ip. The addresses are those of machine.sh.
interfaces() {
    local path address name
    for path in /sys/class/net/*; do
        read -r address <"$path/address"
        case $address in
        52:54:00:77:63:*) name=mgmt ;;
        52:54:00:77:0[0-2]:*) name=card${address:13:1} ;;
        *) continue ;;
        esac
        [ $name = mgmt ] || echo 1 >"/proc/sys/net/ipv6/conf/${path##*/}/disable_ipv6" # the rail has the same address
        echo "link set ${path##*/} name $name"
    done
}

# Each program that starts costs an emulated machine tens of milliseconds; therefore there is one ip and one rdma.
networks() {
    local rail n
    echo "127.0.0.1 localhost" >/etc/hosts
    for ((n = 1; n <= BFO_VM_NODES; n++)); do
        echo "10.77.100.$n node$n" >>/etc/hosts
    done
    echo "node$node" >/proc/sys/kernel/hostname
    {
        interfaces
        printf '%s\n' "link set lo up" "addr add 10.77.100.$node/24 dev mgmt" "link set mgmt up"
        # The rail is a layer above the card: the card continues to take packets when the rail is set down. (Otherwise QEMU
        # would hold the packets back, and with them the sender's queue pairs.)
        for ((rail = 0; rail < BFO_VM_RAILS; rail++)); do
            printf '%s\n' "link set card$rail up" "link add link card$rail name eth$rail type macvlan mode passthru" \
                "addr add 10.77.$rail.$node/24 dev eth$rail" "link set eth$rail up"
        done
    } | ip -batch - || say "cannot set up the networks"
    for ((rail = 0; rail < BFO_VM_RAILS; rail++)); do
        echo "link add rxe$rail type rxe netdev eth$rail"
    done | rdma --batch - || say "cannot make the rails"
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
echo 2 >/proc/sys/kernel/randomize_va_space # The boot goes without (machine.sh), which is faster; programs under test have it.
export BFO_VM_NODE=$node
exec 3<>"$(port bfo.cmd)"
. $share/faults.sh
host_request ready
while :; do
    serve
    sleep 1
done
