"""``python -m rbda_ros.cli``."""

import sys

from rbda_ros.cli import main

sys.exit(main())
