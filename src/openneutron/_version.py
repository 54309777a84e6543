"""The version, read by packaging, CMake and the package."""

__version__ = "0.1.0"
