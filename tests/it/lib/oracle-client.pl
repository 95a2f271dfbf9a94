# A client of the oracle's protocol, ws-pgext(7), for tests.
#   perl oracle-client.pl SOCKET DBOID int4:LIB:SYMBOL VALUE...
# One request of several values of a base type that is an int4.  Prints a line each: `text TEXT`,
# `failed MESSAGE`; or `again MESSAGE`, `closed`.  A VALUE garbage:N sends N random bytes instead.
use strict;
use warnings;
use IO::Socket::UNIX;
$| = 1;
my ($path, $db, $type, @values) = @ARGV;

sub dial {
	my $s = IO::Socket::UNIX->new(Peer => shift) or do { print "absent\n"; exit 0 };
	return $s;
}

sub frame {
	my ($s) = @_;
	my ($head, $body) = ('', '');
	while (length $head < 4) {
		sysread($s, $head, 4 - length $head, length $head) or do { print "closed\n"; exit 0 };
	}
	my $n = unpack 'V', $head;
	while (length $body < $n) {
		sysread($s, $body, $n - length $body, length $body) or do { print "closed\n"; exit 0 };
	}
	return (substr($body, 0, 1), substr($body, 1));
}
sub put { my ($s, $t, $b) = @_; syswrite $s, pack('V', 1 + length $b) . $t . $b }
sub str { my $x = shift; return pack('V', length $x) . $x }

my $s = dial($path);
frame($s);
put($s, 'D', pack 'V', $db);
my ($t, $b) = frame($s);
my $text = substr $b, 4;
if ($t eq 'N') { print "again $text\n"; exit 0 }
$s = dial($path =~ s{[^/]*$}{$text}r);
($t, $b) = frame($s);
die "no greeting\n" unless $t eq 'H' && substr($b, 0, 8) eq 'WSORACLE';
if ($values[0] =~ /^garbage:(\d+)/) {
	my $n = $1;
	srand $n;
	my $junk = join '', map { chr int rand 256 } 1 .. $n;
	# Most of it behind a plausible head.
	$junk = pack('V', $n) . ($n % 2 ? 'V' : 'T') . $junk if $n % 3;
	syswrite $s, $junk;
	shutdown $s, 1;
	($t, $b) = frame($s);
	print "$t ", substr($b, 4), "\n";
	exit 0;
}
my (undef, $lib, $sym) = split /:/, $type;
put($s, 'T', pack('V', 0) . 'b' . pack('VvC', 1, 4, 1) . 'i' . str($lib) . str($sym));
put($s, 'V', pack('VV', 7, scalar @values) . join '', map { pack 'VVl', 0, 4, $_ } @values);
($t, $b) = frame($s);
if ($t ne 'R') { print 'again ', substr($b, 4), "\n"; exit 0 }
my ($seq, $n) = unpack 'VV', $b;
die "not to what was asked\n" unless $seq == 7 && $n == @values;
my $at = 8;
for (1 .. $n) {
	my ($status, $len) = unpack 'CV', substr $b, $at;
	print $status ? 'failed ' : 'text ', substr($b, $at + 5, $len), "\n";
	$at += 5 + $len;
}
die "bytes left over\n" unless $at == length $b;
