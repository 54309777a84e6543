"""The version's only home: packaging, CMake and the package all read it here."""

__version__ = "0.1.0"
