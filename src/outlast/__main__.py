"""The `outlast` command, also as `python -m outlast`. Where only the client is installed, it says what it needs."""

import sys


def main() -> None:
    try:
        from outlast.cli.main import main as run
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.partition(".")[0] == "outlast":
            raise
        sys.exit(f"The command needs more than the client does ({exc.name} is missing): pip install outlast")
    run()


if __name__ == "__main__":
    main()
