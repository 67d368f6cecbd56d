#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# codespell finds no misspelt word in documents, sources and tests, and each file that a document names in `backticks` exists, like each file that
# DESIGN.txt names. DESIGN.txt leaves out folders and the first words of a name: send_api.c is pml_bfo/door/pml_bfo_send_api.c.
. "$BFO_SRCDIR/tests/lib.sh"
need codespell codespell
cd "$BFO_SRCDIR" || exit 1
# Words that codespell takes for misspelt: OFO (the BTL's prefix), ND (a macro of a model), MPI_Improbe, inflight (a counter), "to and fro", "\tthe".
words=ofo,nd,improbe,inflight,fro,tthe
mapfile -t files < <(find README.md CONTRIBUTING.md NEWS DESIGN.txt docs include softrail pml_bfo btl_openib_failover tools railfail contrib tests m4 debian demo.sh test.sh \
    -type f \( -name '*.[ch1-8]' -o -name '*.def' -o -name '*.sh' -o -name '*.p[lm]' -o -name '*.pml' -o -name '*.md' -o -name '*.txt' -o -name NEWS -o -name control \) \
    -not -path '*/results/*' -not -path '*/corpus/*')
[ ${#files[@]} -gt 300 ] || fail "found only ${#files[@]} files in $BFO_SRCDIR"
codespell -L "$words" "${files[@]}" >"$TEST_TMP/words" 2>&1 && [ ! -s "$TEST_TMP/words" ] || fail "misspelt: $(head -n 20 "$TEST_TMP/words")"
echo "a message" | sed s/ss/s/ >"$TEST_TMP/wrong.txt"
codespell -L "$words" "$TEST_TMP/wrong.txt" >/dev/null 2>&1 && fail "codespell finds nothing in a word that is misspelt"

paths=0
while IFS=: read -r page path; do
    paths=$((paths + 1))
    [ -e "$path" ] || [ -e "$(dirname "$page")/$path" ] || fail "$page names $path, which does not exist"
done < <(grep -oE '`[A-Za-z0-9_.-]+/[A-Za-z0-9_./-]+\.(md|txt|sh|pl|c|h|def|pml|am|7)`' README.md CONTRIBUTING.md docs/*.md */README.md tests/*/README.md /dev/null | tr -d '`' | sort -u)
[ "$paths" -gt 10 ] || fail "documents name only $paths files"

# missing_in PAGE: the names of files in PAGE that no file of the tree has. configure makes X from X.in; bml.h, pml.h and btl.h are Open MPI's.
missing_in() {
    perl -MFile::Find -e '
        my (%has, %named, $page) = map { $_ => 1 } qw(bml.h pml.h btl.h);
        find({ no_chdir => 1, wanted => sub {
            return $File::Find::prune = 1 if m{^\./(?:build|\.git)$};
            return if !-f;
            my $path = s{^\./}{}r =~ s/\.in$//r;
            do { ++$has{$path} } while $path =~ s{^[^/]+/}{};    # the path, and its end without the first folders
            do { ++$has{$path} } while $path =~ s/^[^_]*_//;     # the name, and its end without the first words
        } }, ".");
        open $page, "<", $ARGV[0] or die "$ARGV[0]: $!\n";
        while (<$page>) { ++$named{s{^\./}{}r =~ s/^_//r} for /[A-Za-z0-9_.\/-]*\w\.(?:[ch]|def|sh|p[lm]|pml|list|md|txt|am|svg|gdb)\b/g }
        die "few names in $ARGV[0]\n" if 200 > keys %named;
        print "$_\n" for grep { !$has{$_} } sort keys %named' "$1"
}
missing=$(missing_in DESIGN.txt) || fail "cannot read DESIGN.txt"
[ -z "$missing" ] || fail "DESIGN.txt names files that do not exist: ${missing//$'\n'/ }"
sed 's/recv_orphan\.c/recv_lost.c/; s,tests/perf/stalls\.sh,tests/perf/stall.sh,' DESIGN.txt >"$TEST_TMP/page"
[ "$(missing_in "$TEST_TMP/page")" = "recv_lost.c
tests/perf/stall.sh" ] || fail "not found: recv_lost.c, tests/perf/stall.sh"
