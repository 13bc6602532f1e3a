"""Systems under test: started or attached, found out about, addressed."""
