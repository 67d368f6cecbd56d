#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A program with MPI_THREAD_MULTIPLE and a window that does not ask for bfo prints the same before installation, after it and after
# uninstallation, and in a shell that has loaded the module. The file for --tune, or --mca pml bfo in that shell, makes one job use bfo;
# without the directory of bfo, Open MPI prints what docs/FAQ.md quotes.
. "$BFO_SRCDIR/tests/lib.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL
exec </dev/null
stage=$TEST_TMP/stage
export HOME=$TEST_TMP/home
mkdir -p "$HOME"

# stock WHEN: the job of a user who does not know bfo
stock() {
    mpi 2 "$BFO_BUILDDIR/tests/docs/threads_window" >"$TEST_TMP/out" 2>"$TEST_TMP/err" </dev/null
    echo "status $?" >>"$TEST_TMP/out"
    sort "$TEST_TMP/out" >"$TEST_TMP/$1"
    grep -q '^status 0$' "$TEST_TMP/$1" || { cat "$TEST_TMP/$1" "$TEST_TMP/err"; fail "the job fails $1 installation"; }
}
# says_faq WORDS: Open MPI printed them, and the FAQ has them
says_faq() {
    grep -qF -- "$1" "$TEST_TMP/log" || { cat "$TEST_TMP/log"; fail "Open MPI does not say: $1"; }
    grep -qF -- "$1" "$BFO_SRCDIR/docs/FAQ.md" || fail "docs/FAQ.md does not quote: $1"
}

stock before
# Open MPI 4.1 can lose its own text on the way to mpirun: several jobs are tried, until one prints it.
for _ in $(seq 20); do
    mpi 1 --mca pml bfo "$BFO_BUILDDIR/tests/docs/threads_window" >"$TEST_TMP/log" 2>&1 && fail "pml bfo without bfo runs"
    ! grep -q 'requested component was not found' "$TEST_TMP/log" || break
done
says_faq "A requested component was not found"
make -s -C "$BFO_BUILDDIR" install DESTDIR="$stage" >"$TEST_TMP/install.log" 2>&1 </dev/null ||
    { tail -n 20 "$TEST_TMP/install.log"; fail "make install DESTDIR"; }
# The printed instructions change no file that other jobs read.
! grep -q 'mca-params.conf' "$TEST_TMP/install.log" || fail "make install names a global parameter file"
stock after
cmp "$TEST_TMP/before" "$TEST_TMP/after" || fail "installation changed a job that does not ask for bfo"

# The staged tree is not at the path in the file: the test puts in the staged directory.
conf=$(find "$stage" -name bfo.conf)
components=$(dirname "$(find "$stage" -name mca_pml_bfo.so)")
sed "s,^mca_base_component_path = [^:]*,mca_base_component_path = $components," "$conf" >"$TEST_TMP/bfo.conf"
mpi 2 --tune "$TEST_TMP/bfo.conf" --mca btl "$SHARED_MEMORY,self" --mca pml_bfo_counters 1 "$BFO_BUILDDIR/contrib/bfo_stream" \
    -s 1 -m 65536 >"$TEST_TMP/log" 2>&1 || { cat "$TEST_TMP/log"; fail "a job with the file for --tune"; }
grep -q ' 0 wrong' "$TEST_TMP/log" || fail "the job verified nothing"
grep -q 'bfo: rank 0 counters:' "$TEST_TMP/log" || { cat "$TEST_TMP/log"; fail "the file for --tune does not choose bfo"; }
mpi 2 --tune "$TEST_TMP/bfo.conf" --mca btl "$SHARED_MEMORY,self" "$BFO_BUILDDIR/tests/docs/threads_window" >"$TEST_TMP/log" 2>&1 &&
    fail "osc/pt2pt takes MPI_THREAD_MULTIPLE now: correct README.md and docs/FAQ.md"
tr '\n' ' ' <"$TEST_TMP/log" | grep -q 'window for one-sided operations cannot be made.*osc/pt2pt does not support MPI_THREAD_MULTIPLE' ||
    { cat "$TEST_TMP/log"; fail "no word of the way out"; }
mpi 2 --tune "$TEST_TMP/bfo.conf" --mca btl "$SHARED_MEMORY,self" --mca osc rdma "$BFO_BUILDDIR/tests/docs/threads_window" \
    >"$TEST_TMP/log" 2>&1 || { cat "$TEST_TMP/log"; fail "the way out on one node"; }
mpi 2 --tune "$TEST_TMP/bfo.conf" --mca btl "$SHARED_MEMORY,self" "$BFO_BUILDDIR/tests/docs/threads_window" serialized >"$TEST_TMP/log" 2>&1 ||
    { cat "$TEST_TMP/log"; fail "the way out with MPI_THREAD_SERIALIZED"; }
mpi 2 --tune "$TEST_TMP/bfo.conf" --mca btl "$SHARED_MEMORY,self" --mca osc ^pt2pt,rdma,ucx "$BFO_BUILDDIR/tests/docs/threads_window" serialized \
    >"$TEST_TMP/log" 2>&1 && fail "a window without osc/pt2pt"
grep -q 'the parameter osc leaves osc/pt2pt out' "$TEST_TMP/log" || { cat "$TEST_TMP/log"; fail "no word of the parameter osc"; }
mpi 2 --tune "$TEST_TMP/bfo.conf" --mca btl "$SHARED_MEMORY,self" --mca pml ob1 --mca osc ^ucx,pt2pt "$BFO_BUILDDIR/tests/docs/threads_window" \
    >"$TEST_TMP/log" 2>&1 || { cat "$TEST_TMP/log"; fail "windows under ob1 with our components"; }

# The module file: it names the file for --tune, sets no parameter of Open MPI, and refuses where the directory is missing.
module=$(find "$stage" -path '*modulefiles/bfo')
if command -v tclsh >/dev/null; then
    sed "s,\"/,\"$stage/,g" "$module" >"$TEST_TMP/module"
    cat >"$TEST_TMP/load" <<END
proc module-whatis {text} {}
proc module-info {what mode} { return 1 }
proc setenv {name value} { puts "setenv \$name \$value" }
proc prepend-path {name value} { puts "path \$name \$value" }
while 1 { source $TEST_TMP/module; puts loaded; break }
END
    tclsh "$TEST_TMP/load" >"$TEST_TMP/log" 2>&1
    grep -qx "setenv BFO_CONF $conf" "$TEST_TMP/log" && grep -qx loaded "$TEST_TMP/log" ||
        { cat "$TEST_TMP/log"; fail "the module file does not name $conf"; }
    ! grep -q OMPI_MCA "$TEST_TMP/log" || fail "the module file sets a parameter of Open MPI"
    # In a shell that has loaded the module: mpirun from PATH.
    loaded=$PATH
    while read -r directory; do loaded=$directory:$loaded; done < <(sed -n 's/^path PATH //p' "$TEST_TMP/log")
    [ "$loaded" != "$PATH" ] || fail "the module leaves PATH as it is"
    PATH=$loaded MPIRUN=mpirun BFO_CONF=$TEST_TMP/bfo.conf stock loaded
    cmp "$TEST_TMP/before" "$TEST_TMP/loaded" || fail "the module changed a job that does not ask for bfo"
    PATH=$loaded MPIRUN=mpirun BFO_CONF=$TEST_TMP/bfo.conf mpi 2 --mca pml bfo --mca pml_bfo_counters 1 "$BFO_BUILDDIR/contrib/bfo_stream" \
        -s 1 -m 65536 >"$TEST_TMP/log" 2>&1 || { cat "$TEST_TMP/log"; fail "mpirun --mca pml bfo with the module"; }
    grep -q ' 0 wrong' "$TEST_TMP/log" && grep -q 'bfo: rank 0 counters:' "$TEST_TMP/log" ||
        { cat "$TEST_TMP/log"; fail "mpirun --mca pml bfo with the module does not choose bfo"; }
    PATH=$loaded MPIRUN=mpirun BFO_CONF=$TEST_TMP/bfo.conf mpi 1 --mca pml bfo "$OMPI_INFO" --parsable >"$TEST_TMP/log" 2>&1
    grep -qx "mca:btl:openib:version:\"component:$BFO_VERSION\"" "$TEST_TMP/log" || { grep openib "$TEST_TMP/log"; fail "the job does not have our openib"; }
fi

make -s -C "$BFO_BUILDDIR" uninstall DESTDIR="$stage" >"$TEST_TMP/uninstall.log" 2>&1 </dev/null || fail "make uninstall"
rm -rf "$stage"
stock uninstalled
cmp "$TEST_TMP/before" "$TEST_TMP/uninstalled" || fail "uninstallation changed a job that does not ask for bfo"
mpi 2 --tune "$TEST_TMP/bfo.conf" "$BFO_BUILDDIR/tests/docs/threads_window" >"$TEST_TMP/log" 2>&1 && fail "a missing directory is fine now"
says_faq "mpirun: Error: unknown option"
OMPI_MCA_mca_base_component_path=$components:SYS_DEFAULT "$BFO_BUILDDIR/tests/docs/threads_window" >"$TEST_TMP/log" 2>&1 &&
    fail "a missing directory is fine now"
says_faq "opal_shmem_base_select failed"
mpi 2 --tune "$conf" "$BFO_BUILDDIR/tests/docs/threads_window" >"$TEST_TMP/log" 2>&1 </dev/null # the job runs without bfo
says_faq "Unable to locate the variable file"
if command -v tclsh >/dev/null; then
    tclsh "$TEST_TMP/load" >"$TEST_TMP/log" 2>&1
    grep -q 'bfo is not installed on this machine' "$TEST_TMP/log" && ! grep -qx loaded "$TEST_TMP/log" ||
        { cat "$TEST_TMP/log"; fail "the module loads without its directory"; }
fi
exit 0
