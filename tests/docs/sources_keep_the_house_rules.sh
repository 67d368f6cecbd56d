#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Every source has its licence line; no unfinished business is left in the code; every script parses; no C source has more than 600
# lines, and no function of it more than 60; each C source of the product names its section of DESIGN.txt. Tabs and line ends are as
# .editorconfig says.
. "$BFO_SRCDIR/tests/lib.sh"
cd "$BFO_SRCDIR" || exit 1
bad=0
say() { echo "  $*"; bad=$((bad + 1)); }

files=$(find include softrail pml_bfo btl_openib_failover tools railfail contrib tests m4 demo.sh test.sh autogen.sh configure.ac -type f \
    \( -name '*.[ch]' -o -name '*.def' -o -name '*.sh' -o -name '*.am' -o -name '*.pl' -o -name '*.pml' -o -name bfo.m4 \
    -o -name configure.ac \))
[ "$(wc -w <<<"$files")" -gt 20 ] || fail "found no sources in $BFO_SRCDIR"
for file in $files; do
    head -n 5 "$file" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' || say "$file: no SPDX line"
done
for file in $(grep -l . $(find . -name '*.sh' -not -path './build*')); do
    bash -n "$file" || say "$file: does not parse"
done
while IFS= read -r line; do say "$line"; done < <(perl -e '
    for my $file (@ARGV) {
        open my $in, "<", $file or die "$file: $!\n";
        my $text = do { local $/; <$in> };
        print "$file: no end of the last line\n" if $text !~ /\n\z/;
        print "$file: a carriage return\n" if $text =~ /\r/;
        print "$file: a tab\n" if $file =~ /\.(?:c|h|def|pl|pm|sh)$/ && $text =~ /\t/;
        print "$file: a blank at the end of a line\n" if $file =~ /\.(?:c|h|def|pl|pm)$/ && $text =~ /[ \t]$/m;
    }' $files)
product=$(find include softrail pml_bfo btl_openib_failover tools railfail contrib -name '*.c')
[ "$(wc -w <<<"$product")" -gt 50 ] || fail "found no sources of the product"
for file in $product $(find tests -name '*.c'); do
    awk 'END { exit NR > 600 }' "$file" || say "$file: more than 600 lines"
    long=$(awk '/^{$/ { from = NR } /^}/ && from { if (NR - from + 1 > 60) print from; from = 0 }' "$file")
    [ -z "$long" ] || say "$file: the function at line $long has more than 60 lines"
done
# A reference to section N or N.M of DESIGN.txt in a source names a heading that exists.
headings=$(sed -nE 's/^([0-9]+(\.[0-9]+)?)\.? .*/\1/p' DESIGN.txt | sort -u)
[ "$(wc -w <<<"$headings")" -gt 15 ] || fail "found no headings in DESIGN.txt"
sections=$(grep -oE 'DESIGN\.txt (sections? )?[0-9]+(\.[0-9]+)?' $files | sort -u)
[ "$(wc -l <<<"$sections")" -gt 20 ] || fail "no source names a section of DESIGN.txt"
while read -r line; do
    grep -qx -- "${line##* }" <<<"$headings" || say "$line: DESIGN.txt has no such section"
done <<<"$sections"
# without_section FILE...: prints the files whose first comment names no section.
without_section() {
    perl -e '
        for my $file (@ARGV) {
            open my $in, "<", $file or die "$file: $!\n";
            my ($head) = do { local $/; <$in> } =~ m{\A(/\*.*?\*/)}s;
            print "$file\n" if ($head // "") =~ s/\n \*//gr !~ /DESIGN\.txt (?:sections? )?\d/;
        }' "$@"
}
# railfail knows nothing of bfo, and docs/railfail.md describes it.
for file in $(without_section $(find include softrail pml_bfo btl_openib_failover tools contrib -name '*.[ch]')); do
    say "$file: its first comment names no section of DESIGN.txt"
done
sed 's/DESIGN\.txt/README.md/' pml_bfo/formats/pml_bfo_ids.c >"$TEST_TMP/ids.c"
[ "$(without_section pml_bfo/formats/pml_bfo_ids.c "$TEST_TMP/ids.c")" = "$TEST_TMP/ids.c" ] || fail "a source without a section is not found"
unfinished=$(grep -nE '#if 0|\b(TODO|FIXME|HACK)\b' $files | grep -v 'sources_keep_the_house_rules')
[ -z "$unfinished" ] || say "unfinished business: $unfinished"
[ "$bad" = 0 ] || fail "$bad complaints"
