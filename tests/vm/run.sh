#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Boots two or three virtual machines that soft-RoCE rails and a management network connect, runs a command on node1,
# and ends the machines. --help lists the options. Needs no root. DESIGN.txt 17.
set -u
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/image.sh"
. "$here/machine.sh"

BFO_VM_NODES=2 BFO_VM_RAILS=2 VM_MEMORY=${BFO_VM_MEMORY:-768}
VM_SHELL=no VM_SIW=no keep=no out= host_script= timeout=${BFO_VM_TIMEOUT:-300} boot_timeout=${BFO_VM_BOOT_TIMEOUT:-90}
VM_DIR= VM_PID=() helpers=()

usage() {
    cat <<END
Usage: run.sh [OPTION...] -- COMMAND [ARGUMENT...]
Runs COMMAND on node1 of a few virtual machines with soft-RoCE rails and ends with its exit status. The root of the
machines is the host's, under an overlay that is thrown away; COMMAND runs as root, in the folder where run.sh was started.

  --nodes 2|3         how many machines (2): node1, node2, node3
  --rails 1..3        how many rails (2): rxe0 on eth0 is 10.77.0.NODE, rxe1 on eth1 is 10.77.1.NODE, ...
  --timeout SECONDS   the longest time that COMMAND may take (300)
  --out DIR           the folder for the files that COMMAND leaves in \$BFO_VM_OUT
  --host-script FILE  a bash script that runs on the host at the same time as COMMAND, with the verbs of --list
  --keep              keep the folder with consoles, logs and results, and name it
  --siw               with the module of software iWARP, which run.sh builds from the kernel's source
  --shell             an interactive shell on node1 instead of COMMAND
  --list              name the faults that a script can inject, then end
  --help              this text

COMMAND may be one of the verbs of --list; a script gets them by: . "\$BFO_VM_FAULTS". "ssh node2 ..." needs no
password; Open MPI: mpirun -H node1,node2 --mca oob_tcp_if_include mgmt ...
Environment: BFO_VM_ACCEL=tcg|kvm forces the kind of emulation; BFO_VM_CACHE names the folder of the kernel;
BFO_VM_MEMORY: MiB per machine; BFO_VM_BOOT_TIMEOUT: seconds that a boot may take (tried twice).
Exit status: COMMAND's; 124: out of time; 125: the machines did not come up, or died; 77: something is missing (1 if CI=true).
END
}

bad_usage() { echo "run.sh: $*; see run.sh --help" >&2; exit 2; }

options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --nodes | --rails | --timeout | --out | --host-script)
            [ $# -ge 2 ] || bad_usage "$1 wants a value"
            case $1 in
            --nodes) BFO_VM_NODES=$2 ;;
            --rails) BFO_VM_RAILS=$2 ;;
            --timeout) timeout=$2 ;;
            --out) out=$2 ;;
            --host-script) host_script=$2 ;;
            esac
            shift
            ;;
        --keep) keep=yes ;;
        --siw) VM_SIW=yes ;;
        --shell) VM_SHELL=yes ;;
        --list) sed -n 's/^#: //p' "$here/faults.sh"; exit 0 ;;
        --help | -h) usage; exit 0 ;;
        --) shift; break ;;
        -*) bad_usage "unknown option $1" ;;
        *) break ;;
        esac
        shift
    done
    [[ $BFO_VM_NODES =~ ^[23]$ ]] || bad_usage "--nodes is 2 or 3"
    [[ $BFO_VM_RAILS =~ ^[1-3]$ ]] || bad_usage "--rails is 1, 2 or 3"
    [[ $timeout =~ ^[1-9][0-9]*$ ]] || bad_usage "--timeout is a number of seconds"
    [ -z "$host_script" ] || [ -r "$host_script" ] || bad_usage "cannot read $host_script"
    [ "$VM_SHELL" = yes ] || [ $# -gt 0 ] || bad_usage "no command"
    [ "$VM_SHELL" = no ] || [ $# = 0 ] || bad_usage "--shell takes no command"
    command=("$@")
}

# run.sh removes folders of earlier runs that were killed.
sweep() {
    local dir
    for dir in "${TMPDIR:-/tmp}"/bfo-vm.*; do
        [ -O "$dir" ] && [ -f "$dir/owner" ] && ! kill -0 "$(cat "$dir/owner")" 2>/dev/null && rm -rf "$dir"
    done
}

make_folder() {
    sweep
    VM_DIR=$(mktemp -d "${TMPDIR:-/tmp}/bfo-vm.XXXXXX") || exit 1
    case $VM_DIR in *[[:space:],]*) bad_usage "TMPDIR must have no blanks or commas" ;; esac
    VM_OWNER=$$
    [ "$keep" = yes ] || echo $$ >"$VM_DIR/owner"
    mkdir -p "$VM_DIR/share/keys" "$VM_DIR/share/out"
    mkfifo -m 600 "$VM_DIR/events" "$VM_DIR/out" "$VM_DIR/err"
    cp "$here/guest/guest.sh" "$here/faults.sh" "$VM_DIR/share/"
    printf 'export BFO_VM_NODES=%s BFO_VM_RAILS=%s BFO_VM_OUT=/run/bfo-vm/out BFO_VM_FAULTS=/run/bfo-vm/faults.sh BFO_VM_ACCEL=%s\n' \
        "$BFO_VM_NODES" "$BFO_VM_RAILS" "$VM_ACCEL" >"$VM_DIR/share/config"
    "$(vm_find dropbearkey)" -t ed25519 -f "$VM_DIR/share/keys/host" >/dev/null 2>&1 &&
        ssh-keygen -q -t ed25519 -N '' -C bfo-vm -f "$VM_DIR/share/keys/id_ed25519" &&
        mv "$VM_DIR/share/keys/id_ed25519.pub" "$VM_DIR/share/keys/authorized_keys" ||
        { echo "run.sh: cannot make keys in $VM_DIR" >&2; exit 125; }
    make_job
}

# The job: this environment without the variables of the host's session, this folder, the command.
make_job() {
    {
        export -p | grep -Ev '^declare -x (HOME|USER|LOGNAME|SHELL|TERM|TMPDIR|DISPLAY|XDG_[A-Z_]*|SSH_[A-Z_]*|DBUS_[A-Z_]*|MAKEFLAGS|MFLAGS|MAKELEVEL|OLDPWD|PWD|SHLVL)(=|$)'
        echo '. /run/bfo-vm/config; . "$BFO_VM_FAULTS"'
        echo "export PATH=\$PATH:/usr/sbin:/sbin OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
        echo "export OMPI_MCA_plm_rsh_agent=ssh OMPI_MCA_oob_tcp_if_include=mgmt"
        echo "export BFO_VM_NODE=1"
        echo "ulimit -l unlimited"
        printf 'cd %q || exit 125\n' "$PWD"
        if [ "$VM_SHELL" = yes ]; then
            echo "echo \"node1; verbs: run.sh --list; leave with exit\"; PS1='node1:\\w# ' exec bash --norc -i"
        else
            printf '%q ' "${command[@]}"
            echo
        fi
    } >"$VM_DIR/share/job.sh"
}

alive() {
    local n
    for ((n = 1; n <= BFO_VM_NODES; n++)); do
        kill -0 "${VM_PID[n]:-0}" 2>/dev/null || { dead=node$n; return 1; }
    done
}

# next_event DEADLINE: puts the next line of the brokers into $event; returns 1 after the deadline or when a machine has died ($dead).
# A read that times out may have read the beginning of a line, which is kept.
next_event() {
    local part= begun=
    dead=
    while [ "$SECONDS" -lt "$1" ]; do
        if read -r -t 1 part <&"$events"; then
            event=$begun$part
            return 0
        fi
        begun=$begun$part
        alive || return 1
    done
    return 1
}

boot() {
    local n ready=0 deadline=$((SECONDS + boot_timeout))
    rm -f "$VM_DIR"/*.lock
    : >"$VM_DIR/qemu.log"
    came=
    vm_start || return 1
    for ((n = 1; n <= BFO_VM_NODES; n++)); do
        vm_broker "$n" &
        helpers+=($!)
    done
    while [ "$ready" -lt "$BFO_VM_NODES" ]; do
        next_event "$deadline" || return 1
        case $event in ready*) ready=$((ready + 1)) came="$came${event#ready}" ;; esac
    done
}

halt() {
    local pid
    for pid in "${VM_PID[@]}" "${helpers[@]}"; do
        kill "$pid" 2>/dev/null
    done
    for pid in "${VM_PID[@]}"; do
        timeout 5 tail -s 0.1 --pid="$pid" -f /dev/null 2>/dev/null || kill -KILL "$pid" 2>/dev/null
    done
    wait "${helpers[@]}" 2>/dev/null
    VM_PID=() helpers=()
}

cleanup() {
    local status=$?
    trap '' INT TERM HUP
    [ -n "$VM_DIR" ] || exit "$status"
    halt
    if [ -n "$out" ]; then
        mkdir -p "$out" && cp -a "$VM_DIR/share/out/." "$out/" || status=125
    fi
    if [ "$keep" = yes ]; then
        rm -rf "$VM_DIR"/share/keys "$VM_DIR"/*.lock
        find "$VM_DIR" -type p -delete
        echo "run.sh: consoles, logs and results are in $VM_DIR" >&2
    else
        rm -rf "$VM_DIR"
    fi
    exit "$status"
}

show_consoles() {
    local n
    for ((n = 1; n <= BFO_VM_NODES; n++)); do
        echo "--- end of node$n's console" >&2
        tail -n "${1:-15}" "$VM_DIR/console.$n" >&2 2>/dev/null
    done
    tail -n 5 "$VM_DIR/qemu.log" >&2
}

boot_twice() {
    local try
    for try in 1 2; do
        if [ "$VM_SHELL" = no ]; then
            cat "$VM_DIR/out" & streams=($!)
            cat "$VM_DIR/err" >&2 & streams+=($!)
            helpers+=("${streams[@]}")
        fi
        boot && return 0
        echo "run.sh: the machines did not come up (${dead:-no answer after $boot_timeout s but from:${came:- none}}${dead:+ died})" >&2
        show_consoles
        halt
        while read -r -t 0.1 event <&"$events"; do :; done
        [ "$try" = 2 ] || echo "run.sh: trying once more" >&2
    done
    exit 125
}

run_job() {
    local kind=job deadline=$((SECONDS + timeout))
    [ "$VM_SHELL" = yes ] && { kind=shell; deadline=$((SECONDS + 86400)); }
    vm_node_run node1 $kind raw >/dev/null || { echo "run.sh: node1 does not take the job" >&2; exit 125; }
    if [ -n "$host_script" ]; then
        (
            export VM_DIR BFO_VM_NODES BFO_VM_RAILS
            . "$here/faults.sh"
            . "$here/machine.sh"; . "$host_script"
        ) &
        helpers+=($!)
    fi
    while next_event "$deadline"; do
        case $event in
        done*)
            set -- $event
            return "$2"
            ;;
        esac
    done
    if [ -n "$dead" ]; then
        echo "run.sh: $dead died" >&2
        show_consoles
        return 125
    fi
    echo "run.sh: the command was ended after $timeout s; what runs on node1:" >&2
    vm_node_run node1 "ps --ppid 2 -p 2 --deselect -o etimes,stat,wchan:20,args | tail -n 12 | cut -c1-150" >&2
    return 124
}

# Output of the job may still be in the pipes; the end of QEMU closes them.
drain() {
    local pid
    [ "$VM_SHELL" = no ] || return 0
    for pid in "${VM_PID[@]}"; do
        kill "$pid" 2>/dev/null
    done
    for pid in "${streams[@]}"; do
        timeout 20 tail -s 0.1 --pid="$pid" -f /dev/null
    done
}

options "$@"
vm_image "$here"
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
make_folder
exec {events}<>"$VM_DIR/events" {VM_STDIN}<&0
[ "$VM_SHELL" = yes ] || exec {VM_STDIN}</dev/null
boot_twice
run_job
status=$?
drain
exit "$status"
