"""A logger with coloured, dated lines."""

import logging as _logging
import sys as _sys
from logging import CRITICAL, DEBUG, ERROR, INFO, NOTSET, WARNING

__all__ = ["get_logger", "getLogger", "CRITICAL", "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING"]

_COLOURS = {"CRITICAL": "\033[35m", "ERROR": "\033[31m", "WARNING": "\033[33m", "INFO": "\033[32m", "DEBUG": "\033[36m"}


class _Formatter(_logging.Formatter):
    def __init__(self, colour):
        super().__init__(datefmt="%m%d %H:%M:%S")
        self._colour = colour

    def format(self, record):
        label = f"[{record.levelname[0]} {self.formatTime(record, self.datefmt)} {record.process} {record.filename}:"
        label += f"{record.funcName}:{record.lineno}]"
        if self._colour and record.levelname in _COLOURS:
            label = f"{_COLOURS[record.levelname]}{label}\033[0m"
        text = f"{label} {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def get_logger(name=None, filename=None, filemode=None, level=WARNING):
    """A logger of that name which writes to a file, or to the terminal. The root logger is left to its owner."""
    logger = _logging.getLogger(name)
    if name is not None and not getattr(logger, "_symbind_handler", None):
        if filename:
            handler = _logging.FileHandler(filename, filemode or "a")
        else:
            handler = _logging.StreamHandler()
        handler.setFormatter(_Formatter(colour=not filename and _sys.stderr.isatty()))
        logger.addHandler(handler)
        logger._symbind_handler = handler
        logger.setLevel(level)
    return logger


getLogger = get_logger


def logger_of(logger):
    """Where messages for `logger` go, those of C++ too.

    None and the module `logging`, as scripts for MXNet pass it, are the root logger. A script that has set its level to
    INFO or lower without a handler expects MXNet's first message to add one, so the first one here does too. Otherwise
    nothing is set up: a basicConfig() that the script calls later would have no effect."""
    if logger is not None and logger is not _logging:
        return logger
    root = _logging.getLogger()
    if not root.handlers and root.isEnabledFor(INFO):
        _logging.basicConfig()
    return root
