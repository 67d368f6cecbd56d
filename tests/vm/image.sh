# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Kernel and first file system of the machines. The distribution's kernel package is downloaded and unpacked
# into a cache folder, and not installed; needs no root. Sets VM_KERNEL, VM_INITRD, VM_ACCEL. Sourced by run.sh.
# DESIGN.txt 17.

VM_CACHE=${BFO_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bfo-vm}
VM_MODULES="virtio_pci virtio_net virtio_console 9pnet_virtio 9p overlay crc32_generic crc32c_generic
    ib_uverbs rdma_ucm ib_umad rdma_rxe macvlan sch_netem nf_tables nft_numgen"

# vm_need: checks every command that the machines need; prints one line with the packages of all commands that are missing.
vm_need() {
    local lack= pair
    for pair in qemu-system-x86_64=qemu-system-x86 busybox=busybox-static depmod=kmod cpio=cpio nft=nftables \
        rdma=iproute2 tc=iproute2 dropbear=dropbear-bin dropbearkey=dropbear-bin ssh=openssh-client \
        setpriv=util-linux apt-get=apt flock=util-linux; do
        vm_find "${pair%%=*}" >/dev/null || lack="$lack ${pair#*=}"
    done
    [ -z "$lack" ] && return 0
    lack=$(printf '%s\n' $lack | sort -u | tr '\n' ' ')
    vm_skip "no virtual machines here: missing Debian packages; remedy: apt-get install ${lack% }"
}

# The machine's tools may be in sbin, which an ordinary user's PATH lacks.
vm_find() { PATH=$PATH:/usr/sbin:/sbin command -v "$1"; }

# vm_skip REASON: prints one line and skips; in CI this is a failure.
vm_skip() {
    echo "tests/vm: $*" >&2
    [ "${CI:-}" = true ] && exit 1
    exit 77
}

# vm_unpack_kernel PACKAGE: unpacks what the machines use of the package, about 60 MB.
vm_unpack_kernel() (
    local work=$VM_CACHE/$VM_RELEASE keep= folder
    rm -rf "$work"
    mkdir -p "$work" && cd "$work" || exit 1
    apt-get -q download "$1" >apt.log 2>&1 || exit 1
    for folder in crypto lib net fs/9p fs/netfs fs/fscache fs/overlayfs fs/configfs drivers/infiniband drivers/net/virtio_net.ko \
        drivers/net/net_failover.ko drivers/net/macvlan.ko drivers/virtio drivers/char; do
        keep="$keep ./lib/modules/$VM_RELEASE/kernel/$folder"
    done
    set -o pipefail
    dpkg --fsys-tarfile linux-image-*.deb | tar -x "./boot/vmlinuz-$VM_RELEASE" \
        "./lib/modules/$VM_RELEASE/modules.order" "./lib/modules/$VM_RELEASE/modules.builtin" \
        "./lib/modules/$VM_RELEASE/modules.builtin.modinfo" $keep 2>>apt.log &&
        "$(vm_find depmod)" -b "$work" "$VM_RELEASE" 2>>apt.log && rm -f linux-image-*.deb && touch complete
)

vm_fetch_kernel() {
    local package
    package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    [ -n "$package" ] || vm_skip "apt does not know linux-image-amd64; remedy: apt-get update"
    VM_RELEASE=${package#linux-image-}
    [ -e "$VM_CACHE/$VM_RELEASE/complete" ] && return 0
    echo "tests/vm: fetching $package (unpacked into $VM_CACHE, not installed)" >&2
    vm_unpack_kernel "$package" || vm_skip "cannot fetch and unpack $package (see $VM_CACHE/$VM_RELEASE/apt.log); remedy: apt-get update"
}

# vm_plain_kernel: unpacks the kernel on the host, because an emulated machine needs seconds for it, half of its boot. A kernel that is not
# packed by xz remains packed.
vm_plain_kernel() {
    local packed=$VM_CACHE/$VM_RELEASE/boot/vmlinuz-$VM_RELEASE
    VM_KERNEL=$VM_CACHE/$VM_RELEASE/boot/vmlinux-$VM_RELEASE
    [ ! -e "$VM_KERNEL" ] || return 0
    perl -0777 -ne 'print substr($_, index($_, "\xFD7zXZ\0")) if /\xFD7zXZ\0/' "$packed" | xz -dc --single-stream >"$VM_KERNEL.new" 2>/dev/null
    if [ "$(head -c 4 "$VM_KERNEL.new" | tail -c 3)" = ELF ]; then
        mv "$VM_KERNEL.new" "$VM_KERNEL"
    else
        rm -f "$VM_KERNEL.new"
        VM_KERNEL=$packed
    fi
}

# vm_build_siw: builds software iWARP, which Debian's kernel leaves out, from that kernel's own source into the cache. Once.
vm_build_siw() (
    local module=$VM_CACHE/$VM_RELEASE/lib/modules/$VM_RELEASE/kernel/drivers/infiniband/sw/siw/siw.ko
    local work=$VM_CACHE/$VM_RELEASE/siw series headers folder package
    [ -e "$module" ] && exit 0
    echo "tests/vm: building siw from the kernel's source (in $work, nothing is installed)" >&2
    series=$(cut -d. -f1,2 <<<"$VM_RELEASE")
    headers=$(apt-cache depends "linux-headers-$VM_RELEASE" | sed -n 's/^ *Depends: \(linux-\(headers\|kbuild\)-.*\)/\1/p')
    rm -rf "$work"
    mkdir -p "$work/root" "${module%/*}" && cd "$work" || exit 1
    # shellcheck disable=SC2086 # split into words on purpose
    apt-get -q download "linux-headers-$VM_RELEASE" $headers "linux-source-$series" >build.log 2>&1 || exit 1
    for package in linux-headers-*.deb linux-kbuild-*.deb; do
        dpkg-deb -x "$package" root || exit 1
    done
    set -o pipefail
    dpkg --fsys-tarfile linux-source-*.deb | tar -xO "./usr/src/linux-source-$series.tar.xz" |
        tar -xJ --wildcards "*/drivers/infiniband/sw/siw/*" 2>>build.log || exit 1
    folder=$work/root/usr/src/linux-headers-$VM_RELEASE
    sed -i "s|/usr/src/|$work/root/usr/src/|" "$folder/Makefile" # it names the folder of an installed package
    make -C "$folder" M="$work/linux-source-$series/drivers/infiniband/sw/siw" CONFIG_RDMA_SIW=m modules >>build.log 2>&1 &&
        strip -g -o siw.ko "linux-source-$series/drivers/infiniband/sw/siw/siw.ko" && mv siw.ko "$module" &&
        "$(vm_find depmod)" -b "$VM_CACHE/$VM_RELEASE" "$VM_RELEASE" 2>>build.log && rm -rf root linux-* || exit 1
)

# vm_module_files: the modules that the machines need and their dependencies, in the order of loading.
vm_module_files() {
    local module
    for module in $VM_MODULES; do
        "$(vm_find modprobe)" -d "$VM_CACHE/$VM_RELEASE" -S "$VM_RELEASE" --show-depends "$module" || return 1
    done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

vm_build_initrd() {
    local here=$1 key work files
    key=$({ echo "$VM_MODULES"; cat "$here/image.sh" "$here/guest/init"; } | sha256sum | cut -c1-16)
    VM_INITRD=$VM_CACHE/$VM_RELEASE/initrd-$key
    [ -e "$VM_INITRD" ] && return 0
    work=$(mktemp -d "$VM_CACHE/work.XXXXXX") || return 1
    mkdir -p "$work/bin" "$work/modules"
    cp "$(vm_find busybox)" "$work/bin/busybox"
    ln -s busybox "$work/bin/sh"
    cp "$here/guest/init" "$work/init"
    chmod 755 "$work/init"
    files=$(vm_module_files) || { rm -rf "$work"; return 1; }
    cp $files "$work/modules/"
    printf '%s\n' $files | sed 's|.*/||' >"$work/modules/order"
    find "$VM_CACHE/$VM_RELEASE" -maxdepth 1 -name "initrd-*" -mtime +7 -delete
    (cd "$work" && find . | cpio -o -H newc --quiet --owner=0:0) >"$VM_INITRD.new"
    rm -rf "$work"
    mv "$VM_INITRD.new" "$VM_INITRD"
}

# vm_choose_accel: KVM if a machine really boots with it, otherwise plain emulation. BFO_VM_ACCEL=tcg|kvm overrides.
# The cache keeps the answer until the host boots again.
vm_choose_accel() {
    local memory boot
    boot=$(cat /proc/sys/kernel/random/boot_id)
    memory=$VM_CACHE/accel-$boot-$(id -u)
    VM_ACCEL=${BFO_VM_ACCEL:-}
    [ -z "$VM_ACCEL" ] && [ -e "$memory" ] && VM_ACCEL=$(cat "$memory")
    case $VM_ACCEL in
    tcg | kvm) return 0 ;;
    '') ;;
    *) echo "tests/vm: BFO_VM_ACCEL=$VM_ACCEL: only tcg or kvm will do" >&2; exit 2 ;;
    esac
    VM_ACCEL=tcg
    if [ -r /dev/kvm ] && [ -w /dev/kvm ]; then
        timeout -k 1 20 "$(vm_find qemu-system-x86_64)" -nodefaults -no-user-config -display none -no-reboot \
            -machine q35,accel=kvm -cpu host -m 256 -kernel "$VM_KERNEL" -initrd "$VM_INITRD" -serial none \
            -append 'quiet panic=-1 bfo.probe' -device isa-debug-exit,iobase=0xf4,iosize=4 </dev/null >/dev/null 2>&1
        [ $? = 33 ] && VM_ACCEL=kvm # 33: the guest wrote 0x10, (0x10 << 1) | 1
    fi
    rm -f "$VM_CACHE"/accel-*-"$(id -u)"
    echo "$VM_ACCEL" >"$memory"
}

# vm_image HERE: does all of the above, for one run.sh at a time.
vm_image() {
    vm_need
    [ "$(uname -m)" = x86_64 ] || vm_skip "the machines are made for x86_64 hosts, this is $(uname -m)"
    mkdir -p "$VM_CACHE" || exit 1
    exec 9>"$VM_CACHE/lock"
    flock -w 120 9 || { echo "tests/vm: $VM_CACHE/lock is held for two minutes already" >&2; exit 1; }
    vm_fetch_kernel
    vm_plain_kernel
    if [ "${VM_SIW:-no}" = yes ]; then
        vm_build_siw || vm_skip "cannot build siw (see $VM_CACHE/$VM_RELEASE/siw/build.log); remedy: apt-get update, apt-get install make and the kernel's gcc"
        VM_MODULES="$VM_MODULES siw"
    fi
    vm_build_initrd "$1" || { echo "tests/vm: cannot build the initrd in $VM_CACHE" >&2; exit 1; }
    vm_choose_accel
    exec 9>&-
}
