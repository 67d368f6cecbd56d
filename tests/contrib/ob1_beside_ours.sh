#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# check-ob1-pml-diffs.pl on a made-up tree: explained differences, and each kind of unexplained difference; text, JSON and HTML.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/contrib/small.sh"
ends 0 revision --tree "$BASE" --accept
cp "$MAP" "$MAP.good"
cp -r "$OURS" "$OURS.good"
match=$BASE/ompi/mca/pml/ob1/pml_ob1_match.c

ends 0 diffs --tree "$BASE"
says '0 unexplained'
says 'bfo: pml_bfo/types/pml_bfo_match.c:2 our_match'
says 'meant: ours is twice as long'
says 'no counterpart: ours never does it twice'
says '== matching'
says '== parameters'
ends 0 diffs --tree "$BASE" Matching
says '== matching'
says_not '== parameters'
ends 0 diffs
says '0 unexplained'

# unexplained NAME TEXT: one unexplained difference, status 1; then restores map and sources.
unexplained() {
    ends 1 diffs --tree "$BASE"
    says '1 unexplained'
    says "$2"
    note "$1: found"
    cp "$MAP.good" "$MAP"
    rm -rf "$OURS"
    cp -r "$OURS.good" "$OURS"
}
sed -i '/^function | ob1_twice/d' "$MAP"
unexplained "a function without a line" '! function  ob1_twice'
sed -i '/^param | pml_ob1_depth/d' "$MAP"
unexplained "a parameter without a line" '! param     pml_ob1_depth'
sed -i '/^field | ob1_send_request_t.bytes/d' "$MAP"
unexplained "a request field without a line" '! field     ob1_send_request_t.bytes'
sed -i '/^error | /d' "$MAP"
unexplained "an error path without a line" '! error     ob1_match OMPI_ERR_OUT_OF_RESOURCE'
sed -i 's/OPAL_ERR_OUT_OF_RESOURCE/0/' "$OURS/pml_bfo/types/pml_bfo_match.c"
unexplained "an error code handled there and not here" 'OMPI_ERR_OUT_OF_RESOURCE is handled there and not here'
sed -i 's/^\(error .*\)|$/\1| ours has room/' "$MAP"
sed -i 's/OPAL_ERR_OUT_OF_RESOURCE/0/' "$OURS/pml_bfo/types/pml_bfo_match.c"
ends 0 diffs --tree "$BASE"
says 'meant: ours has room'
cp "$MAP.good" "$MAP"
cp "$OURS.good/pml_bfo/types/pml_bfo_match.c" "$OURS/pml_bfo/types/"
sed -i 's/^function | ob1_register \(.*\)our_parameters/function | ob1_register \1our_lost/' "$MAP"
unexplained "a function of ours that is gone" 'its piece of ours is gone: our_lost'
sed -i 's/\(struct | ob1_match_hdr_t .*\)our_send_t/\1?/' "$MAP"
unexplained "a line nobody has filled in" 'its line does not say yet which piece of ours does this'
sed -i 's/"depth"/"deep"/' "$OURS/pml_bfo/types/pml_bfo_match.c"
unexplained "a parameter of ours that is gone" 'its piece of ours is gone: "depth"'
sed -i 's/"depth"/"deep"/' "$OURS/pml_bfo/types/pml_bfo_match.c"
printf 'static const char *our_words[][1] = {{"depth"}};\n' >>"$OURS/pml_bfo/types/pml_bfo_types.h"
unexplained "a parameter of ours that is only a word elsewhere" 'its piece of ours is gone: "depth"'
sed -i 's/our_device/our_machine/' "$OURS/pml_bfo/types/pml_bfo_types.h"
unexplained "a topic whose piece is gone" '! topic     accelerator  ('
sed -i '/^typedef/s/long bytes; //' "$OURS/pml_bfo/types/pml_bfo_types.h"
unexplained "a field of ours that is gone" 'its piece of ours is gone: our_send_t.bytes'

# JSON and HTML: sources and reasons appear as text, whatever they contain.
ends 0 diffs --tree "$BASE" --json
perl -MJSON::PP -e 'local $/; my $all = decode_json(<STDIN>); my ($m) = grep { $_->{name} eq "matching" } @{$all->{concepts}};
    exit !($all->{unexplained} == 0 && grep { $_->{name} eq "ob1_match" && $_->{ours}[0]{line} == 2 } @{$m->{rows}})' <"$TEST_TMP/out" ||
    { show_said; fail "--json"; }
sed -i 's/return found + /char *evil = "<script>alert(1)<\/script>\&"; return found + /' "$match"
LC_ALL=C sed -i $'s/return found + /char *name = "caf\303\251, na\357ve"; &/' "$match" # UTF-8 and Latin-1
sed -i "s/ours is twice as long/<b>bold<\/b> \& 'quoted'/" "$MAP"
ends 0 diffs --tree "$BASE" --html "$TEST_TMP/page.html"
[ ! -s "$TEST_TMP/out" ] || fail "--html prints something as well"
! grep -q '<script>\|<b>' "$TEST_TMP/page.html" || fail "the page does not escape its sources"
grep -q '&lt;script&gt;alert(1)&lt;/script&gt;&amp;' "$TEST_TMP/page.html" || fail "the page does not show ob1's source"
grep -qF $'caf\303\251, na\357\277\275ve' "$TEST_TMP/page.html" || fail "the page does not show UTF-8 as it is, and other bytes as replaced"
grep -q '&lt;b&gt;bold&lt;/b&gt; &amp; &#39;quoted&#39;' "$TEST_TMP/page.html" || fail "the page does not show the reason"
grep -q 'static int our_match(list_t \*l)' "$TEST_TMP/page.html" || fail "the page does not show our source"
perl -ne 'while (/<(\/?)(html|body|table|tr|td|th|details|pre|h1|h2|summary|head|title|style)\b/g) { $1 ? (pop(@s) eq $2 or exit 1) : push @s, $2 }
    END { exit 1 if @s }' "$TEST_TMP/page.html" || fail "the page's elements are not closed in order"

# Both print their manuals.
for script in revision diffs; do
    ends 0 "$script" --help
    says 'EXIT STATUS'
    says '--tree'
done
