"""Starts the workers of a distributed job, with the options of MXNet's launch.py.

    symbind-launch -n 4 python train.py --kv-store dist_sync             # four workers on this host
    symbind-launch -n 4 -H hosts python train.py --kv-store dist_sync    # on the hosts of a file, by ssh

docs/distributed.md describes the options and what happens when a worker fails.
"""

import sys


def main(argv=None):
    """The command symbind-launch; returns its exit code."""
    from ._launch.command import main

    return main(argv)


if __name__ == "__main__":
    sys.exit(main())
