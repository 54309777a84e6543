"""The options that every command to a board has."""

from __future__ import annotations

PORT_HELP = "Serial port (/dev/ttyACM0, COM3), socket://host:port, or http://board for the runner over HTTP."
PROTOCOL_HELP = "auto asks the board; executorch or tflm skips the question."
BAUD_HELP = "Speed of the serial port."
BOARD_HELP = "Check the model against the limits of this board: frdmmcxn947, mimxrt700evk, mimxrt2660evk, ..."
INPUT_HELP = ".npy for one input, .npz by name for several; random data without it."
