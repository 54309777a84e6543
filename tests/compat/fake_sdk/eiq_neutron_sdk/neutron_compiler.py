"""The newer spelling; absent when the test asks for an SDK that has only the older one."""

import os

from eiq_neutron_sdk._fake import convert


def _compile(model, context):
    print("compileModel was called", flush=True)
    return convert(model, context)


if os.environ.get("FAKE_SDK_SPELLING") == "compiler":
    compileModel = _compile
