"""`python -m outlast` is the `outlast` command."""

from outlast.cli.main import main

if __name__ == "__main__":
    main()
