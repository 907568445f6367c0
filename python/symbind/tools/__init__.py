"""Programs that come with the package: python -m symbind.tools.im2rec."""
