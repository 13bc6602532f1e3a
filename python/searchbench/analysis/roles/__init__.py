"""What went on beside the readers: what it took from them, whether it was applied, and when seen.

model     what is judged                  accepted  what a writer got done
visible   from the answer to a write until it can be found
truth     what was acknowledged against what is there
meanwhile answers while documents change
results   all of it for each treatment, and response times over the drive
"""
