"""Do two systems return the same?"""
