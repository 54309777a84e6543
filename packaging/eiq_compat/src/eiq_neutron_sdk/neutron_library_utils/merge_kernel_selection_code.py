"""`python -m eiq_neutron_sdk.neutron_library_utils.merge_kernel_selection_code -input-files … -output-file …`."""

import sys

from openneutron.compat.merge_kernel_selection_code import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
