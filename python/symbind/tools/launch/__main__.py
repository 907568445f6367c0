"""python -m symbind.tools.launch."""

import sys

from . import main

sys.exit(main())
