"""Driving: requests, their order, the measuring core, the probe of the machine."""
