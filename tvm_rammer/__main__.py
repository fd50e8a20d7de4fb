"""`python -m tvm_rammer`."""

import sys

from .cli import main

sys.exit(main())
