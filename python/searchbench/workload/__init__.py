"""What is asked or written, and when: portable queries, verbatim requests, loads."""
