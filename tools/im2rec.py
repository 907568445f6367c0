#!/usr/bin/env python3
"""Packs folders of images into RecordIO files: python3 tools/im2rec.py --help. The same as symbind-im2rec."""

import sys

from symbind.tools.im2rec import main

sys.exit(main())
