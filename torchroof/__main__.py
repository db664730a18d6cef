"""`python -m torchroof` is the command `torchroof`."""

import sys

from torchroof.cli import main

if __name__ == "__main__":
    sys.exit(main())
