"""``python -m untemplate`` is the ``untemplate`` command."""

import sys

from untemplate.cli import main

if __name__ == "__main__":
    sys.exit(main())
