"""Command line of condsim: one file per command, thin callers of the library."""
