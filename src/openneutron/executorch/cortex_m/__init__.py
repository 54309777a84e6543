"""The Cortex-M33 beside the NPU: which nodes its operators take, and the passes that hand them over."""
