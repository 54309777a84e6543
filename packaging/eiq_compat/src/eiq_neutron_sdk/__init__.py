"""The names of NXP's SDK, served by OpenNeutron."""

from eiq_neutron_sdk import neutron_compiler, neutron_converter, neutron_library_utils
from openneutron import __version__
from openneutron.compat.eiq import merge_kernel_selection_files

# Tells OpenNeutron's seam to NXP's converter that this is not NXP's converter.
OPENNEUTRON_COMPATIBILITY = True

__all__ = [
    "OPENNEUTRON_COMPATIBILITY",
    "__version__",
    "merge_kernel_selection_files",
    "neutron_compiler",
    "neutron_converter",
    "neutron_library_utils",
]
