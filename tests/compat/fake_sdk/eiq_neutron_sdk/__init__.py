"""A stand-in for NXP's SDK, as small as the documented surface; environment variables choose how it misbehaves."""

import os

__version__ = "9.9.9"

if os.environ.get("FAKE_SDK_IMPORT") == "broken":
    raise OSError("libfake.so: cannot open shared object file")
if os.environ.get("FAKE_SDK_IMPORT") == "dependency":
    import a_package_that_is_not_there  # noqa: F401
if os.environ.get("FAKE_SDK_IMPORT") == "ours":
    OPENNEUTRON_COMPATIBILITY = True
