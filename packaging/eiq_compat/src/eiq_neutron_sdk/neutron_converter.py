"""The older spelling of the converter."""

from openneutron.compat.eiq import CompilationContext, CompilationOptions, convertModel, getNeutronTarget

__all__ = ["CompilationContext", "CompilationOptions", "convertModel", "getNeutronTarget"]
