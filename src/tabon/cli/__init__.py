"""The command line: parse, call one function, print."""

from tabon.cli.app import main

__all__ = ["main"]
