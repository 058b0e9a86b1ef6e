"""``python -m untemplate`` is the ``untemplate`` command."""

import sys

from untemplate._internal.cli import main

if __name__ == "__main__":
    sys.exit(main())
