#!/usr/bin/perl
# The client of the seed's time: one line of standard input at a time, over Debian's Thrift library.
#
#     perl scribe_client.pl PORT CATEGORY
#
# The calls are written by hand: the classes that the page uses are made by Thrift's compiler.
use strict;
use warnings;
use Thrift::Type;
use Thrift::MessageType;
use Thrift::Socket;
use Thrift::FramedTransport;
use Thrift::BinaryProtocol;

my ($port, $category) = @ARGV;
my $transport = Thrift::FramedTransport->new(Thrift::Socket->new('127.0.0.1', $port));
my $protocol = Thrift::BinaryProtocol->new($transport);
$transport->open();

my $number = 0;
while (my $line = <STDIN>) {
    $protocol->writeMessageBegin('Log', Thrift::TMessageType::CALL, ++$number);
    $protocol->writeStructBegin('Log_args');
    $protocol->writeFieldBegin('messages', Thrift::TType::LIST, 1);
    $protocol->writeListBegin(Thrift::TType::STRUCT, 1);
    $protocol->writeStructBegin('LogEntry');
    $protocol->writeFieldBegin('category', Thrift::TType::STRING, 1);
    $protocol->writeString($category);
    $protocol->writeFieldEnd();
    $protocol->writeFieldBegin('message', Thrift::TType::STRING, 2);
    $protocol->writeString($line);
    $protocol->writeFieldEnd();
    $protocol->writeFieldStop();
    $protocol->writeStructEnd();
    $protocol->writeListEnd();
    $protocol->writeFieldEnd();
    $protocol->writeFieldStop();
    $protocol->writeStructEnd();
    $protocol->writeMessageEnd();
    $transport->flush();

    my ($name, $kind, $answered, $field, $type, $id, $result);
    $protocol->readMessageBegin(\$name, \$kind, \$answered);
    die "an answer to $answered of $number\n" if $answered != $number || $name ne 'Log';
    die "an exception\n" if $kind != Thrift::TMessageType::REPLY;
    $protocol->readStructBegin(\$field);
    $protocol->readFieldBegin(\$field, \$type, \$id);
    $protocol->readI32(\$result);
    $protocol->readFieldEnd();
    $protocol->readFieldBegin(\$field, \$type, \$id);
    $protocol->readMessageEnd();
    print "$result\n";
}
$transport->close();
