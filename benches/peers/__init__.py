"""Other people's clients, run beside ours: how each is asked, what it says, what it does not do."""
