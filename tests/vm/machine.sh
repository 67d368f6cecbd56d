# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The machines as seen from the host: their command lines, the pipes to them, and their requests to the host.
# VM_DIR is the folder of this run. Sourced by run.sh. DESIGN.txt 17.

# Networks: two machines are connected directly; of three machines, node1's QEMU is the hub. "@NET.NODE@": see boot.pl.
vm_net() {
    local node=$1 net=$2 mac=$3 peer
    if [ "$BFO_VM_NODES" = 3 ] && [ "$node" = 1 ]; then
        echo "-netdev hubport,id=$net,hubid=${net#n}"
        for peer in 2 3; do
            echo "-netdev stream,id=$net-$peer,server=off,addr.type=fd,addr.str=@$net.$peer@"
            echo "-netdev hubport,id=$net-hub$peer,hubid=${net#n},netdev=$net-$peer"
        done
    else
        peer=$node
        [ "$node" = 1 ] && peer=2
        echo "-netdev stream,id=$net,server=off,addr.type=fd,addr.str=@$net.$peer@"
    fi
    echo "-device virtio-net-pci,id=nic-$net,netdev=$net,mac=$mac,romfile="
}

# maxcpus promises a second processor that never comes: without it an emulated guest has no memory barriers, and loses rails. An emulated
# processor goes without what costs time and tests nothing: erms, with which the guest copies byte by byte, a fifth level of page tables, and
# protection of the kernel from programs. DESIGN.txt 17.
vm_command() {
    local node=$1 rail name
    local cpu=max,erms=off,la57=off,smap=off,smep=off,umip=off,pku=off,mpx=off
    [ "$VM_ACCEL" = kvm ] && cpu=host
    echo "-nodefaults -no-user-config -display none -no-reboot -name node$node"
    echo "-machine q35,accel=$VM_ACCEL -cpu $cpu -smp 1,maxcpus=2 -m $VM_MEMORY"
    echo "-kernel $VM_KERNEL -initrd $VM_INITRD"
    echo "-chardev file,id=console,path=$VM_DIR/console.$node -serial chardev:console"
    echo "-fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"
    echo "-device virtio-9p-pci,fsdev=root,mount_tag=root"
    echo "-fsdev local,id=share,path=$VM_DIR/share,security_model=none,multidevs=remap"
    echo "-device virtio-9p-pci,fsdev=share,mount_tag=share"
    echo "-device virtio-rng-pci -device virtio-serial-pci"
    for name in cmd ctl; do
        echo "-chardev pipe,id=$name,path=$VM_DIR/$name.$node -device virtserialport,chardev=$name,name=bfo.$name"
    done
    echo "-chardev pipe,id=qmp,path=$VM_DIR/qmp.$node -mon chardev=qmp,mode=control"
    if [ "$node" = 1 ] && [ "$VM_SHELL" = yes ]; then
        echo "-chardev stdio,id=tty,signal=off -device virtconsole,chardev=tty"
    elif [ "$node" = 1 ]; then
        for name in out err; do
            echo "-chardev file,id=$name,path=$VM_DIR/$name -device virtserialport,chardev=$name,name=bfo.$name"
        done
    fi
    vm_net "$node" n9 "52:54:00:77:63:0$node"
    for ((rail = 0; rail < BFO_VM_RAILS; rail++)); do
        vm_net "$node" "n$rail" "52:54:00:77:0$rail:0$node"
    done
}

# vm_start: starts all machines; their pids are in VM_PID. They die with this script, however it ends.
vm_start() {
    local node rail port links=
    for ((node = 1; node <= BFO_VM_NODES; node++)); do
        for port in cmd ctl qmp; do
            rm -f "$VM_DIR/$port.$node".{in,out}
            mkfifo -m 600 "$VM_DIR/$port.$node".{in,out}
        done
        {
            vm_find qemu-system-x86_64
            vm_command "$node" | tr ' ' '\n'
            echo "-append"
            echo "console=ttyS0 quiet loglevel=3 no_timer_check panic=-1 random.trust_cpu=on mitigations=off norandmaps bfo.node=$node"
        } >"$VM_DIR/command.$node"
        [ "$node" = 1 ] && continue
        for ((rail = 0; rail < BFO_VM_RAILS; rail++)); do
            links="$links n$rail.$node"
        done
        links="$links n9.$node"
    done
    rm -f "$VM_DIR"/pid.*
    # shellcheck disable=SC2086 # the names of the links are split into words on purpose
    setpriv --pdeathsig KILL perl "$here/boot.pl" "$VM_DIR" "$BFO_VM_NODES" $links <&"$VM_STDIN" 2>>"$VM_DIR/qemu.log" &
    helpers+=($!)
    for ((node = 1; node <= BFO_VM_NODES; node++)); do
        timeout 10 sh -c "until [ -s '$VM_DIR/pid.$node' ]; do sleep 0.05; done" || return 1
        VM_PID[node]=$(cat "$VM_DIR/pid.$node")
    done
}

# vm_qmp NODE JSON: sends a command to the machine monitor; prints the answer, returns 1 if it is an error.
vm_qmp() (
    exec 6>>"$VM_DIR/qmp.$1.lock" 4<>"$VM_DIR/qmp.$1.in" 5<>"$VM_DIR/qmp.$1.out"
    flock -w 20 6 || exit 1
    if [ ! -s "$VM_DIR/qmp.$1.lock" ]; then
        echo '{"execute":"qmp_capabilities"}' >&4
        vm_qmp_answer >/dev/null || exit 1
        echo up >&6
    fi
    echo "$2" >&4
    vm_qmp_answer
)

vm_qmp_answer() {
    local line
    while read -r -t 20 line <&5; do
        case $line in
        *'"return"'*) printf '%s\n' "$line"; return 0 ;;
        *'"error"'*) printf '%s\n' "$line"; return 1 ;;
        esac
    done
    echo "no answer from the machine's monitor"
    return 1
}

# vm_node_run NODE COMMAND: runs COMMAND on NODE over the console port; returns its output and status.
vm_node_run() (
    local status text n=${1#node}
    exec 6>>"$VM_DIR/cmd.$n.lock" 4<>"$VM_DIR/cmd.$n.in" 5<>"$VM_DIR/cmd.$n.out"
    flock -w 60 6 || exit 1
    if [ -n "${3:-}" ]; then echo "$2"; else base64 -w0 <<<"$2"; echo; fi >&4
    read -r -t 60 status text <&5 || { echo "$1 does not answer" >&2; exit 1; }
    base64 -d <<<"$text"
    [ -z "$text" ] || echo
    exit "$status"
)

# vm_request WORDS: a request of a machine, or of the host itself; prints ok or the reason of a refusal.
vm_request() {
    case $1 in
    link) vm_request_link "${2#node}" "$3" "$4" ;;
    pause) vm_request_pause "${2#node}" "$3" ;;
    *) echo "unknown request: $*" ;;
    esac
}

vm_request_link() {
    local up=false answer
    [[ $1 =~ ^[1-3]$ && $2 =~ ^[0-2]$ ]] || { echo "no such link"; return; }
    [ "$3" = on ] && up=true
    answer=$(vm_qmp "$1" "{\"execute\":\"set_link\",\"arguments\":{\"name\":\"nic-n$2\",\"up\":$up}}") &&
        echo ok || echo "${answer:-no answer}"
}

# Checks that the machine stops, and later that it runs again.
vm_request_pause() {
    [[ $1 =~ ^[1-3]$ && $2 =~ ^[0-9]+$ ]] || { echo "no such machine"; return; }
    vm_qmp "$1" '{"execute":"stop"}' >/dev/null
    vm_qmp "$1" '{"execute":"query-status"}' | grep -q '"paused"' || { echo "node$1 did not stop"; return; }
    sleep "$2"
    vm_qmp "$1" '{"execute":"cont"}' >/dev/null
    vm_qmp "$1" '{"execute":"query-status"}' | grep -q '"running"' && echo ok || echo "node$1 did not go on"
}

# vm_broker NODE: serves the requests of one machine; ready and done become events of run.sh.
vm_broker() {
    local node=$1 line= begun=
    exec 4<>"$VM_DIR/ctl.$node.in" 5<>"$VM_DIR/ctl.$node.out"
    while kill -0 "$VM_OWNER" 2>/dev/null; do
        # A read that times out may hold the beginning of a line.
        read -r -t 5 line <&5 || { begun=$begun$line; continue; }
        line=$begun$line begun=
        case $line in
        ready* | done*) echo "$line node$node" >>"$VM_DIR/events"; echo ok >&4 ;;
        *) vm_request $line >&4 ;;
        esac
    done
}
