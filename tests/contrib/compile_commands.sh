#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# make compile_commands.json: each source of the product and each program of the unit tests has an entry; the commands of the entries compile in
# their directories, and touch no object and no dependency file of the build. A folder that is no build of bfo is refused.
. "$BFO_SRCDIR/tests/lib.sh" || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL
json=$BFO_BUILDDIR/compile_commands.json
make -s -C "$BFO_BUILDDIR" >"$TEST_TMP/log" 2>&1 || { tail -n 20 "$TEST_TMP/log"; fail "make"; }
rm -f "$json"
touch "$TEST_TMP/stamp"
make -s -C "$BFO_BUILDDIR" compile_commands.json >"$TEST_TMP/log" 2>&1 || { tail -n 20 "$TEST_TMP/log"; fail "make compile_commands.json"; }
touched=$(find "$BFO_BUILDDIR"/{pml_bfo,btl_openib_failover,softrail,tools,contrib} -newer "$TEST_TMP/stamp" \( -name '*.o' -o -name '*.lo' -o -name '*.P*o' \))
[ -z "$touched" ] || fail "the build is touched: $touched"
perl -MJSON::PP -MCwd=abs_path - "$json" "$BFO_SRCDIR" <<'PERL' || fail "compile_commands.json is not what it should be"
use strict;
use warnings;
my ($json, $top) = @ARGV;
$top = abs_path($top);
open my $in, '<', $json or die "$json: $!\n";
my $entries = decode_json(do { local $/; <$in> });
my (%of, $bad);
for my $entry (@$entries) {
    -d $entry->{directory} && -f $entry->{file} or print("no such place: $entry->{directory}, $entry->{file}\n"), $bad = 1;
    push @{$of{$entry->{file}}}, $entry;
}
# Sources that no build compiles by themselves have no entry.
my @sources = (glob("$top/{pml_bfo/*,btl_openib_failover/*,softrail,tools}/*.c"), "$top/contrib/bfo_stream.c", glob("$top/tests/unit/test_*.c"));
die "found only " . @sources . " sources\n" if @sources < 150;
for (@sources) { $of{$_} or print("no entry of $_\n"), $bad = 1 }
# One entry of ten is compiled.
my $n = 0;
for my $source (grep { $of{$_} && 0 == $n++ % 10 } @sources) {
    my $entry = $of{$source}[0];
    chdir $entry->{directory} or die "$entry->{directory}: $!\n";
    my @arguments = @{$entry->{arguments}};
    for (0 .. $#arguments) { $arguments[$_ + 1] = '/dev/null' if $arguments[$_] eq '-o' }
    system(@arguments) == 0 or print("does not compile: @arguments\n"), $bad = 1;
}
exit($bad ? 1 : 0);
PERL
perl "$BFO_SRCDIR/contrib/compile-commands.pl" "$TEST_TMP" >"$TEST_TMP/log" 2>&1 && fail "an empty folder is a build"
grep -q 'is no build of bfo' "$TEST_TMP/log" || { cat "$TEST_TMP/log"; fail "not said what is wrong with the folder"; }
exit 0
