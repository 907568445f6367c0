"""The parts of tools/make_docs.py."""
