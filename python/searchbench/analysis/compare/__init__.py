"""Which is better, and is it resolved?"""
