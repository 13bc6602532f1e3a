"""Machines reached by ssh on which parts of a system run: started, watched and cleaned up there.

supervisor  what runs at the other end of an ssh; its source is sent there, nothing is installed
link        one such ssh: what is asked of the supervisor, and what it reports by itself
files       the files of an index there and back
deployed    what of one deployment runs on one host
hosts       the links of a run; the hosts of a deployment: their effect, and what they used
left        what a ledger knows of them
survey      each host looked at before the first minute, with the position of what is wrong
"""
