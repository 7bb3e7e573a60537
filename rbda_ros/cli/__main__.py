"""``python -m rbda_ros.cli``."""

import sys

from rbda_ros.cli.commands import main

sys.exit(main())
