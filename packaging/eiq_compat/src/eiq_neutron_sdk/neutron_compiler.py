"""The newer spelling of the converter."""

from openneutron.compat.eiq import CompilationContext, CompilationOptions, compileModel, getNeutronTarget

__all__ = ["CompilationContext", "CompilationOptions", "compileModel", "getNeutronTarget"]
