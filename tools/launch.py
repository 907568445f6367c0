#!/usr/bin/env python3
"""Starts the workers of a distributed job: python3 tools/launch.py --help. The same as symbind-launch."""

import sys

from symbind.tools.launch import main

sys.exit(main())
