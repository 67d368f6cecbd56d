# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Reads contrib/ob1-map.txt, refuses a line that means nothing, writes the file in one step. DESIGN.txt 18.1 and the head of
# the file itself describe the format.
package Bfo::Map;
use strict;
use warnings;
use Exporter 'import';
use Cwd 'abs_path';
use Encode ();
use File::Basename 'dirname';
use File::Temp ();
our @EXPORT_OK = qw(short_file write_file);

my %is_kind = map { $_ => 1 } qw(function macro constant typedef struct field param error variable header component);

# The last two parts of a path are enough to identify a thing, unless two things of one name agree in them.
sub short_file {
    my ($path) = @_;
    return $path =~ m{([^/]+/[^/]+)$} ? $1 : $path;
}

# read(PATH): dies with one message that names the line.
sub read {
    my ($class, $path) = @_;
    open my $in, '<:raw', $path or die "$path: cannot read it: $!\n";
    local $/;
    my $bytes = <$in> // die "$path: cannot read it: $!\n";
    return $class->from_bytes($path, $bytes);
}

# from_bytes(PATH, BYTES): the map that PATH has with these bytes.
sub from_bytes {
    my ($class, $path, $bytes) = @_;
    my ($number, $self) = (0, bless { path => $path, rows => [], by_name => {}, concepts => {}, order => [], topics => [],
                       watch => { every => [], folders => [], headers => {} } }, $class);
    for my $line (split /\n/, $bytes =~ s/\n\z//r, -1) {
        $number++;
        my $text = eval { Encode::decode('UTF-8', $line, Encode::FB_CROAK | Encode::LEAVE_SRC) }
            // die "$path:$number: it is no UTF-8\n";
        my $row = { text => $text, number => $number };
        push @{$self->{rows}}, $row;
        next if $text =~ /^\s*(?:#|$)/;
        my $wrong = $self->read_row($row, split / \|(?: |$)/, $text, -1);
        die "$path:$number: $wrong: $text\n" if $wrong;
    }
    @{$self->{watch}{every}} or die "$path: it has no line 'watch every FOLDER'\n";
    return $self;
}

# Returns a text that says what is wrong with the row, or nothing.
sub read_row {
    my ($self, $row, @column) = @_;
    if ($column[0] =~ /^watch (every|folders) (\S+)$/) {
        push @{$self->{watch}{$1}}, $2;
        $self->{line_of}{$2} = $row->{number};
        return;
    }
    if ($column[0] =~ /^concept (\w+)$/) {
        return 'a concept needs one sentence' if @column != 2 || $column[1] eq '';
        return 'this concept has a line already' if $self->{concepts}{$1};
        push @{$self->{order}}, $1;
        $self->{concepts}{$1} = $column[1];
        return;
    }
    return $self->read_topic($row, @column) if $column[0] =~ /^topic /;
    return $self->read_entry($row, @column);
}

sub read_topic {
    my ($self, $row, $name, $pattern, $concept, $ours, $why) = @_;
    return 'a topic has five columns' if !defined $why || $why eq '';
    my $wrong = $self->wrong_piece($concept, $ours, $why);
    return $wrong if $wrong;
    my $regex = eval { qr/$pattern/i } or return 'this is no pattern';
    push @{$self->{topics}}, { %$row, name => $name =~ s/^topic //r, pattern => $regex, concept => $concept,
                               pieces => [split /\s*,\s*/, $ours], why => $why };
    return;
}

sub wrong_piece {
    my ($self, $concept, $ours, $why) = @_;
    return "there is no concept '$concept'" if !$self->{concepts}{$concept};
    return 'it names nothing of ours and no reason' if $ours eq '' || ($ours eq '-' && $why eq '');
    return "'$ours' is no list of names" if $ours !~ /^(?:[-=?]|(?:[\w.]+|"\w+")(?:, *(?:[\w.]+|"\w+"))*)$/;
    return;
}

sub read_entry {
    my ($self, $row, @column) = @_;
    return 'it names nothing: an entry has seven columns' if @column != 7;
    my ($kind, $name, $file, $concept, $ours, $compared, $why) = @column;
    return "'$kind' is no kind of thing" if !$is_kind{$kind};
    return 'it names nothing: the name is missing' if $name eq '' || $file eq '';
    my $wrong = $self->wrong_piece($concept, $ours, $why);
    return $wrong if $wrong;
    my ($release, $record) = $compared =~ /^(\S+) (\S.*)$/;
    return 'it must say the release and the record it was compared with, or -' if !defined $release && $compared ne '-';
    @$row{qw(kind name file concept ours release record why)} = ($kind, $name, $file, $concept, $ours, $release, $record, $why);
    $row->{pieces} = $ours =~ /^[-=?]$/ ? [] : [split /\s*,\s*/, $ours];
    my $same = $self->{by_name}{"$kind $name"} //= [];
    return 'this thing has a line already' if grep { $_->{file} eq $file } @$same;
    push @$same, $row;
    return;
}

sub entries { return grep { $_->{kind} } @{$_[0]{rows}} }

# The releases of the lines, the most frequent first.
sub releases {
    my ($self) = @_;
    my %n;
    $n{$_->{release}}++ for grep { defined $_->{release} } $self->entries;
    return sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n;
}

# Is the file of the line (its last two parts, or the whole path) the file of the fact?
sub fits {
    my ($line, $fact) = @_;
    return $line->{file} eq $fact->{file} || $line->{file} eq short_file($fact->{file});
}

# pair(FACTS): pairs each fact with its line. First within one file, the longest path of the map before shorter paths; then the rest
# of that name, in order. Returns ([fact or undef, line or undef], ...).
sub pair {
    my ($self, @facts) = @_;
    my (%taken, @pairs, @later);
    for my $fact (@facts) {
        my ($line) = sort { length $b->{file} <=> length $a->{file} } grep { fits($_, $fact) && !$taken{$_} }
            @{$self->{by_name}{"$fact->{kind} $fact->{name}"} // []};
        if ($line && !$taken{$line}++) { push @pairs, [$fact, $line] } else { push @later, $fact }
    }
    for my $fact (@later) {
        my ($line) = grep { !$taken{$_} } @{$self->{by_name}{"$fact->{kind} $fact->{name}"} // []};
        $taken{$line} = 1 if $line;
        push @pairs, [$fact, $line];
    }
    push @pairs, map { [undef, $_] } grep { !$taken{$_} } $self->entries;
    return @pairs;
}

# entry_text(ENTRY): the text of the line in the file.
sub entry_text {
    my ($entry) = @_;
    my $compared = defined $entry->{release} ? "$entry->{release} $entry->{record}" : '-';
    return join(' | ', @$entry{qw(kind name file concept ours)}, $compared, $entry->{why}) =~ s/ +$//r;
}

# save(): writes all rows, except rows without text. It does not write a map that the next run would refuse.
sub save {
    my ($self) = @_;
    my $text = join '', map { "$_->{text}\n" } grep { defined $_->{text} } @{$self->{rows}};
    eval { ref($self)->from_bytes('in the new text, line', Encode::encode('UTF-8', $text)) }
        or die "$self->{path}: not written, because it could not be read again: $@";
    write_file($self->{path}, $text);
}

# write_file(PATH, TEXT): writes all or nothing. A symlink stays, and its target is replaced.
sub write_file {
    my ($name, $text) = @_;
    my $path = -l $name ? abs_path($name) : $name;
    defined $path && $path ne '' or die "$name: cannot write there\n";
    die "$name: this is no regular file, and is not replaced\n" if -e $path && !-f _;
    my $new = eval { File::Temp->new(DIR => dirname($path), TEMPLATE => '.new-XXXXXX') } or die "$name: cannot write there\n";
    binmode $new, ':encoding(UTF-8)';
    print $new $text and $new->flush and $new->sync or die "$path: cannot write it: $!\n";
    chmod((-e $path ? (stat _)[2] & 07777 : 0666 & ~umask), "$new");
    close $new or die "$path: cannot write it: $!\n";
    rename "$new", $path or die "$path: cannot replace it: $!\n";
    $new->unlink_on_destroy(0);
}

1;
