#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# convert_btl.pl   gives each kept input of fuzz_btl.c that is a modex record of an older version the version of today, because a record of
# another version is refused at its first byte. Run it when OFO_RECORD_VERSION is raised. An input named by its hash gets the name of its new
# bytes. If the layout changed as well, fuzz afterwards (make fuzz): libFuzzer goes on from these inputs. Prints the names.
use strict;
use warnings;
use Digest::SHA qw(sha1_hex);
use FindBin;

sub slurp { my ($file) = @_; open my $in, '<:raw', $file or die "$file: $!\n"; local $/; return <$in> }

my $kept = "$FindBin::Bin/corpus/btl";
my $header = "$FindBin::Bin/../../btl_openib_failover/formats/btl_openib_wire.h";
my ($version) = slurp($header) =~ /^#define OFO_RECORD_VERSION (\d+)/m or die "$header: no OFO_RECORD_VERSION\n";
for my $file (glob "$kept/*") {
    my $bytes = slurp($file);
    # The first byte modulo 4 selects the reader; 1 is fuzz_record(), and the record begins with its version.
    next if length $bytes < 2 || ord($bytes) % 4 != 1 || ord(substr $bytes, 1) >= $version;
    substr($bytes, 1, 1) = chr $version;
    my ($name) = $file =~ m{([^/]+)$};
    my $new = $name =~ /^[0-9a-f]{40}$/ ? sha1_hex($bytes) : $name;
    unlink $file or die "$file: $!\n";
    open my $out, '>:raw', "$kept/$new" or die "$kept/$new: $!\n";
    print $out $bytes;
    close $out or die "$kept/$new: $!\n";
    print "$name is $new\n";
}
