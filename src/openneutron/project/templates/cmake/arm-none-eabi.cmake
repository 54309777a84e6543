# Arm's GCC for bare metal.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
find_program(ARM_GCC arm-none-eabi-gcc)
if(NOT ARM_GCC)
  message(FATAL_ERROR "arm-none-eabi-gcc was not found; Debian has it in gcc-arm-none-eabi and libnewlib-arm-none-eabi")
endif()
set(CMAKE_C_COMPILER "${ARM_GCC}")
# A test program cannot be linked before its memory is known.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
