# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The checks of configure. Each check that fails adds a line to bfo_missing that names the package of the
# missing thing; configure reports all lines together, so that one command installs everything.

AC_DEFUN([BFO_INIT_MISSING], [bfo_missing=; bfo_packages=])

# BFO_MISSING(what, Debian package)
AC_DEFUN([BFO_MISSING], [
    bfo_missing="$bfo_missing
    $1 (Debian package: $2)"
    AS_CASE([" $bfo_packages "], [*" $2 "*], [], [bfo_packages="$bfo_packages $2"])
])

# Checks for Open MPI 5.0 and later: its headers include PMIx, and the kind of its threads is a choice of its build. The headers of that
# choice are not installed, and our headers replace only those of POSIX threads. In 6.0 libmpi has only the functions MPI_*, and
# libopen_mpi the rest.
AC_DEFUN([BFO_CHECK_OPENMPI_5], [
    AS_IF([test 5 = "$bfo_ompi_series"], [OMPI_LIBS="-lmpi -lopen-pal"], [MPI_LIBS="-lmpi -lopen_mpi"; OMPI_LIBS="-lopen_mpi -lopen-pal"])
    PKG_CHECK_MODULES([PMIX], [pmix],
        [OMPI_CPPFLAGS="$OMPI_CPPFLAGS `echo "$PMIX_CFLAGS" | sed 's/-I */-isystem /g'`"
         OMPI_LIBS="$OMPI_LIBS $PMIX_LIBS"
         pmix_componentdir=`$PKG_CONFIG --variable=libdir pmix`/pmix],
        [BFO_MISSING([pmix, which the headers of Open MPI $OMPI_VERSION include], [libpmix-dev])])
    AC_MSG_CHECKING([for the threads of Open MPI])
    bfo_threads=`sed -n 's,^#define MCA_threads_mutex_base_include_HEADER "opal/mca/threads/\(@<:@^/@:>@*\)/.*,\1,p' \
        "$ompi_incdir/openmpi/opal_config.h" 2>/dev/null`
    AC_MSG_RESULT([${bfo_threads:-unknown}])
    AS_IF([test "x$bfo_threads" = xpthreads || test ! -f "$ompi_incdir/openmpi/opal_config.h"], [],
        [AC_MSG_ERROR([Open MPI $OMPI_VERSION in $ompi_incdir was configured with the threads "$bfo_threads": bfo needs POSIX threads (its configure option --with-threads=pthreads)])])
])

# Programs of the tests receive events of PMIx, if its headers are installed. From Open MPI 5.0 on the check above has required them.
AC_DEFUN([BFO_CHECK_PMIX], [
    AS_IF([test "x$bfo_ompi_series" = x4], [PKG_CHECK_MODULES([PMIX], [pmix], [], [PMIX_LIBS=])])
    AM_CONDITIONAL([HAVE_PMIX], [test -n "$PMIX_LIBS"])
])

# The installed Open MPI: programs, version, directories, development headers.
AC_DEFUN([BFO_CHECK_OPENMPI], [
    bfo_ompi_path=$PATH
    AS_IF([test -n "$with_openmpi" && test "x$with_openmpi" != xyes], [bfo_ompi_path=$with_openmpi/bin])
    AC_PATH_PROG([OMPI_INFO], [ompi_info], [], [$bfo_ompi_path])
    AC_PATH_PROG([MPICC], [mpicc], [], [$bfo_ompi_path])
    AC_PATH_PROG([MPIRUN], [mpirun], [], [$bfo_ompi_path])
    OMPI_VERSION=none
    AS_IF([test -z "$OMPI_INFO" || test -z "$MPIRUN"],
          [BFO_MISSING([ompi_info and mpirun of an installed Open MPI, sought in $bfo_ompi_path], [openmpi-bin])])
    AS_IF([test -z "$MPICC"], [BFO_MISSING([mpicc of an installed Open MPI, sought in $bfo_ompi_path], [libopenmpi-dev])])
    AS_IF([test -n "$OMPI_INFO" && test -n "$MPICC"], [
        AC_MSG_CHECKING([for the version of Open MPI])
        bfo_info=`"$OMPI_INFO" --parsable 2>/dev/null; "$OMPI_INFO" --parsable --path all 2>/dev/null`
        OMPI_VERSION=`echo "$bfo_info" | sed -n 's/^ompi:version:full://p' | tail -n 1`
        ompi_incdir=`echo "$bfo_info" | sed -n 's/^path:incdir://p' | tail -n 1`
        ompi_libdir=`echo "$bfo_info" | sed -n 's/^path:libdir://p' | tail -n 1`
        ompi_componentdir=`echo "$bfo_info" | sed -n 's/^path:pkglibdir://p' | tail -n 1`
        AC_MSG_RESULT([$OMPI_VERSION])
        AS_CASE([$OMPI_VERSION],
            [4.1.*], [bfo_ompi_series=4],
            [5.0.*], [bfo_ompi_series=5],
            [6.0.*], [bfo_ompi_series=6],
            [AC_MSG_ERROR([Open MPI $OMPI_VERSION is not supported: bfo needs Open MPI 4.1, 5.0 or 6.0; name another one with --with-openmpi=DIR])])
        OMPI_CPPFLAGS="-isystem $ompi_incdir -isystem $ompi_incdir/openmpi"
        AC_MSG_CHECKING([for the development headers of Open MPI])
        bfo_headers=yes
        for bfo_h in opal/mca/btl/btl.h ompi/mca/pml/pml.h ompi/mca/bml/bml.h opal/mca/rcache/rcache.h; do
            AS_IF([test -f "$ompi_incdir/openmpi/$bfo_h"], [], [bfo_headers="no ($ompi_incdir/openmpi/$bfo_h)"])
        done
        AC_MSG_RESULT([$bfo_headers])
        AS_IF([test "x$bfo_headers" != xyes],
              [BFO_MISSING([the component headers of Open MPI: configure it --with-devel-headers], [libopenmpi-dev])])
    ])
    OMPI_LDFLAGS="-L$ompi_libdir"
    MPI_LIBS=-lmpi
    AS_CASE(["$bfo_ompi_series"], [5 | 6], [BFO_CHECK_OPENMPI_5], [OMPI_LIBS="-lmpi -lopen-rte -lopen-pal"])
    # Open MPI's event loop is libevent's. An Open MPI with a copy of its own has the functions in libopen-pal under other names.
    PKG_CHECK_EXISTS([libevent_core], [OMPI_LIBS="$OMPI_LIBS `$PKG_CONFIG --libs libevent_core`"])
    AC_SUBST([OMPI_VERSION])
    AS_CASE([$OMPI_VERSION], [4.*], [bfo_ulfm=no], [bfo_ulfm=yes])
    AM_CONDITIONAL([HAVE_ULFM], [test yes = "$bfo_ulfm"])
    AC_SUBST([OMPI_CPPFLAGS])
    AC_SUBST([OMPI_LDFLAGS])
    AC_SUBST([OMPI_LIBS])
    AC_SUBST([MPI_LIBS])
    AC_SUBST([ompi_componentdir])
    AC_SUBST([pmix_componentdir])
])

# BFO_PKG(variable prefix, pkg-config module, Debian package)
AC_DEFUN([BFO_PKG], [
    PKG_CHECK_MODULES([$1], [$2], [bfo_have_$1=yes],
                      [bfo_have_$1=no; BFO_MISSING([$2], [$3])])
])

AC_DEFUN([BFO_CHECK_LIBRARIES], [
    AC_PATH_PROG([POD2MAN], [pod2man])
    AS_IF([test -z "$POD2MAN"], [BFO_MISSING([pod2man, which makes the man pages of contrib/], [perl])])
    BFO_PKG([IBVERBS], [libibverbs >= 1.13], [libibverbs-dev])
    BFO_PKG([RDMACM], [librdmacm], [librdmacm-dev])
    BFO_PKG([HWLOC], [hwloc], [libhwloc-dev])
    BFO_PKG([JANSSON], [jansson], [libjansson-dev])
    AC_CHECK_HEADER([event2/event.h], [], [BFO_MISSING([event2/event.h, which the headers of Open MPI include], [libevent-dev])])
    # cmocka 2.0 warns of assert_in_range(), and 1.1 has nothing else.
    PKG_CHECK_MODULES([CMOCKA], [cmocka], [have_cmocka=yes; CMOCKA_CFLAGS="$CMOCKA_CFLAGS -Wno-deprecated-declarations"], [have_cmocka=no])
    AM_CONDITIONAL([HAVE_CMOCKA], [test yes = "$have_cmocka"])
])

# BFO_CFLAG(variable, flag): add the flag to the variable if the compiler knows it.
AC_DEFUN([BFO_CFLAG], [
    AC_MSG_CHECKING([whether $CC takes $2])
    bfo_save=$CFLAGS
    CFLAGS="-Werror $2"
    AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes]); $1="$$1 $2"], [AC_MSG_RESULT([no])])
    CFLAGS=$bfo_save
])

AC_DEFUN([BFO_CHECK_COMPILER], [
    BFO_CFLAGS="-std=gnu11 -fvisibility=hidden -fno-strict-aliasing"
    for bfo_flag in -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wmissing-prototypes -Wpointer-arith -Wwrite-strings; do
        BFO_CFLAG([BFO_CFLAGS], [$bfo_flag])
    done
    # The flag forbids the compiler to pack two neighbouring words into one vector store: that saves instructions, but a later load of one word waits.
    BFO_CFLAG([BFO_CFLAGS], [-fno-tree-slp-vectorize])
    # Open MPI's headers decide by configuration that 16-byte compare-and-swap exists; without this flag
    # a component loads and dies later under MPI_THREAD_MULTIPLE.
    OMPI_CFLAGS=
    AS_CASE([$host_cpu], [x86_64], [BFO_CFLAG([OMPI_CFLAGS], [-mcx16])])
    AS_IF([test "x$enable_werror" = xyes], [BFO_CFLAGS="$BFO_CFLAGS -Werror"])
    AS_IF([test "x$enable_sanitizers" = xyes], [
        BFO_CFLAG([BFO_CFLAGS], [-fsanitize=address,undefined])
        BFO_CFLAGS="$BFO_CFLAGS -fno-omit-frame-pointer -fno-sanitize-recover=undefined"
    ])
    bfo_plugin_ldflags="-module -avoid-version -shared"
    # An undefined symbol in a plug-in makes the link fail, not the user's job. A sanitizer's run-time symbols come with the
    # program that loads the plug-in, therefore sanitized builds do without this check.
    AS_IF([test "x$enable_sanitizers" = xyes], [], [bfo_plugin_ldflags="$bfo_plugin_ldflags -Wl,-z,defs"])
    AC_SUBST([BFO_CFLAGS])
    AC_SUBST([OMPI_CFLAGS])
    AC_SUBST([bfo_plugin_ldflags])
])

AC_DEFUN([BFO_REPORT_MISSING], [
    AS_IF([test -n "$bfo_missing"], [
        AC_MSG_ERROR([these are missing:$bfo_missing
  On Debian: apt-get install$bfo_packages])
    ])
])

AC_DEFUN([BFO_SUMMARY], [
    eval bfo_cd=\"$with_componentdir\"; eval bfo_cd=\"$bfo_cd\"; eval bfo_cd=\"$bfo_cd\"
    AS_IF([test "x$prefix" = xNONE], [bfo_cd=`echo "$bfo_cd" | sed "s,^NONE,$ac_default_prefix,"`])
    AS_IF([test yes = "$have_cmocka"], [bfo_unit=yes], [bfo_unit="no (cmocka is missing: apt-get install libcmocka-dev)"])
    AS_ECHO(["
bfo $PACKAGE_VERSION
  Open MPI                      $OMPI_VERSION ($OMPI_INFO)
  its components                $ompi_componentdir
  our components go to          $bfo_cd
  PML bfo                       yes, failover: $enable_pml_failover
  BTL openib                    yes, failover: $enable_btl_openib_failover
  software rails (softrail)     yes
  unit tests                    $bfo_unit
  sanitizers                    $enable_sanitizers
  assertions                    $enable_assertions
  compiler                      $CC $CFLAGS $BFO_CFLAGS
"])
])
