"""The figures that we hold ourselves to; ``make bench`` prints them. Never part of the tests."""
