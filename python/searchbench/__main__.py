"""``python -m searchbench``: the command line, where the ``searchbench`` command is not on PATH."""

from searchbench.cli import main

if __name__ == "__main__":
    main()
