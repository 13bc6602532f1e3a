"""What the machine and the server do while a trial goes on, phase after phase."""
