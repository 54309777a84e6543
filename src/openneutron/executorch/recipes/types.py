"""The names of our recipes."""

from __future__ import annotations

from executorch.export import RecipeType


class NeutronRecipeType(RecipeType):
    """The NPU, the rest in portable kernels."""

    INT8_PTQ_PER_TENSOR = "neutron_int8_ptq_per_tensor"
    INT8_PTQ_PER_CHANNEL = "neutron_int8_ptq_per_channel"
    INT8_QAT_PER_TENSOR = "neutron_int8_qat_per_tensor"
    INT8_QAT_PER_CHANNEL = "neutron_int8_qat_per_channel"

    @classmethod
    def get_backend_name(cls) -> str:
        """The name under which the provider is registered."""
        return "neutron"


class CortexMRecipeType(RecipeType):
    """ExecuTorch's own Cortex-M operators; weights of convolutions are always per channel there."""

    INT8_PTQ = "cortex_m_int8_ptq"

    @classmethod
    def get_backend_name(cls) -> str:
        """The name under which the provider is registered."""
        return "cortex_m"


class Imxrt700cmRecipeType(RecipeType):
    """i.MX RT700: Neutron wherever possible, leftovers on Cortex-M operators, the rest in portable kernels."""

    INT8_PTQ_PER_TENSOR = "imxrt700cm_int8_ptq_per_tensor"
    INT8_PTQ_PER_CHANNEL = "imxrt700cm_int8_ptq_per_channel"
    INT8_QAT_PER_TENSOR = "imxrt700cm_int8_qat_per_tensor"
    INT8_QAT_PER_CHANNEL = "imxrt700cm_int8_qat_per_channel"

    @classmethod
    def get_backend_name(cls) -> str:
        """The name under which the provider is registered."""
        return "imxrt700cm"
