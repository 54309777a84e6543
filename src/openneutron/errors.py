"""The exceptions of OpenNeutron. Each formats its own sentence: what was wrong, where, what to do.

Example:
    >>> print(FormatError("operator 3 reads tensor 99 of 12", where="model.tflite", hint="re-export the model"))
    model.tflite: operator 3 reads tensor 99 of 12. Hint: re-export the model
"""

from __future__ import annotations


class OpenNeutronError(Exception):
    """Base of every error a user can cause and act on; the command line prints it without a traceback."""

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        # One positional argument, so that unpickling (which calls the class with `args`) can rebuild it in another process.
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}. Hint: {self.hint}" if self.hint else text


class FormatError(OpenNeutronError):
    """A file or buffer is not what it claims to be; `where` names the file and, when known, the byte offset."""


class OptionError(OpenNeutronError):
    """An option, target or argument has a value that is not accepted; the message lists the accepted ones."""


class UnsupportedError(OpenNeutronError):
    """The model asks for something that cannot be compiled; the hint says what to change."""


class ConverterError(OpenNeutronError):
    """The converter (ours or NXP's) failed on a model that passed the checks in front of it."""


class RuntimeFailure(OpenNeutronError):
    """The driver or firmware refused or failed; `code` is the driver's error word."""

    def __init__(self, message: str, *, where: str = "", hint: str = "", code: int = 0) -> None:
        super().__init__(message, where=where, hint=hint)
        self.code = code


class BoardError(OpenNeutronError):
    """A board or its port did not answer, answered nonsense, or refused; `where` is the port."""


class NoReference(RuntimeFailure):
    """LiteRT itself does not take a model or its inputs, so there is nothing to compare with; the message is LiteRT's."""


class MissingExtraError(OpenNeutronError, ImportError):
    """Something needs a package that an extra of OpenNeutron brings; the hint is the command that installs it."""


class InternalError(OpenNeutronError):
    """A broken promise inside OpenNeutron (a verifier found a wrong schedule, a leftover after `check` said yes)."""


def not_a_model(source: object) -> OptionError:
    """Return the error for an object that is not a model."""
    return OptionError(
        f"the model is a {type(source).__name__}",
        hint="give an nn.Module, an ExportedProgram, or a LiteRT file by path or as bytes",
    )
