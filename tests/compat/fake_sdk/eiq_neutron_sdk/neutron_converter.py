"""The older spelling; absent when the test asks for an SDK that has only the newer one."""

import os

from eiq_neutron_sdk._fake import CompilationContext, convert, getNeutronTarget

if os.environ.get("FAKE_SDK_SPELLING", "converter") == "converter":
    convertModel = convert

__all__ = ["CompilationContext", "getNeutronTarget"]
