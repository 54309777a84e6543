# Driver and firmware for a Cortex-M33, and one application around one model. From the project's root:
#
#   make -f runtime/cortex_m33/firmware.mk library
#   make -f runtime/cortex_m33/firmware.mk image MODEL=folder [SELECTION=kernel_selection.c]
#
# MODEL holds model.c and model.h, made by `openneutron extract-payload x.pte -o folder/model.c --random-inputs 0`;
# the image becomes folder/NAME.elf. SELECTION links only the kernels it names.
CROSS ?= arm-none-eabi-
# cortex-m33+nodsp builds the portable loops.
CPU ?= cortex-m33
BUILD ?= build/firmware
NAME ?= model
# When coded constants become plain: a `block` of output channels at a time, in the least memory; at each `call`, in the memory of
# the largest; or at `prepare`, in memory for all of them.
DECODE ?= block

RUNTIME := $(patsubst %/cortex_m33/,%,$(dir $(lastword $(MAKEFILE_LIST))))
# What the compiler counts with too; `stack` in the report of an image is the measured figure.
STACK_BYTES ?= $(shell sed -n 's/^STACK_BYTES = //p' $(RUNTIME)/../src/openneutron/machine/runtime_memory.py)
VERSION := $(shell sed -n 's/^__version__.*"\(.*\)"/\1/p' $(RUNTIME)/../src/openneutron/_version.py)
# An application sees the public headers alone.
PUBLIC := -I$(RUNTIME)/include -I$(RUNTIME)/cortex_m33
PRIVATE := -I$(RUNTIME)/include -I$(RUNTIME)/firmware -I$(RUNTIME)/firmware/driver -I$(RUNTIME)/firmware/machine
# Without warnings about formats: here uint32_t is a long, which printf's rules tell apart from an int and the machine not.
CFLAGS := -mcpu=$(CPU) -mthumb -mfloat-abi=soft -std=c11 -Os -g -ffunction-sections -fdata-sections \
          -MMD -MP -Wall -Wextra -Werror -Wno-format -DNEUTRON_NO_HEAP -DNEUTRON_NO_THREADS \
          '-DOPENNEUTRON_VERSION="$(VERSION)"' $(if $(filter prepare,$(DECODE)),-DDECODE_AT_PREPARE) $(if $(filter block,$(DECODE)),-DDECODE_BY_BLOCK)
LDFLAGS := -nostartfiles --specs=nano.specs -Wl,--gc-sections -Wl,--no-warn-rwx-segments \
           -Wl,--defsym=STACK_BYTES=$(STACK_BYTES) -T $(RUNTIME)/cortex_m33/mps2_an505.ld

LIBRARY := $(BUILD)/libneutron.a
# All of runtime/firmware, nothing of runtime/host.
SOURCES := $(wildcard $(RUNTIME)/firmware/*.c $(RUNTIME)/firmware/*/*.c)
APPLICATION := $(wildcard $(RUNTIME)/cortex_m33/*.c)
OBJECTS := $(SOURCES:$(RUNTIME)/%.c=$(BUILD)/%.o)
APPLICATION_OBJECTS := $(filter-out %/main.o,$(APPLICATION:$(RUNTIME)/%.c=$(BUILD)/%.o))

.PHONY: library image
library: $(LIBRARY)
image: $(MODEL)/$(NAME).elf

# Inner loops are built for speed, everything else for size.
$(BUILD)/firmware/dsp/%.o: CFLAGS += -O3

$(BUILD)/%.o: $(RUNTIME)/%.c $(RUNTIME)/cortex_m33/firmware.mk
	@mkdir -p $(@D)
	$(CROSS)gcc $(CFLAGS) $(PRIVATE) -c $< -o $@

$(BUILD)/cortex_m33/%.o: $(RUNTIME)/cortex_m33/%.c $(RUNTIME)/cortex_m33/firmware.mk
	@mkdir -p $(@D)
	$(CROSS)gcc $(CFLAGS) $(PUBLIC) -c $< -o $@

# P tells members apart by folder: a kernel and its cost formula may have the same name.
$(LIBRARY): $(OBJECTS)
	@rm -f $@
	$(CROSS)ar rcsP $@ $^

$(MODEL)/%.o: $(MODEL)/%.c
	$(CROSS)gcc $(CFLAGS) -c $< -o $@

# The application's own main.c includes the model's sizes.
$(MODEL)/main.o: $(RUNTIME)/cortex_m33/main.c $(MODEL)/model.h
	$(CROSS)gcc $(CFLAGS) $(PUBLIC) -I$(MODEL) -c $< -o $@

$(MODEL)/$(NAME)_selection.o: $(SELECTION)
	$(CROSS)gcc $(CFLAGS) $(PRIVATE) -c $< -o $@

# Objects come before the library: a selection's table is then already there when the linker looks for one.
$(MODEL)/$(NAME).elf: $(MODEL)/main.o $(MODEL)/model.o $(APPLICATION_OBJECTS) $(if $(SELECTION),$(MODEL)/$(NAME)_selection.o) \
                      $(LIBRARY) $(RUNTIME)/cortex_m33/mps2_an505.ld
	$(CROSS)gcc $(CFLAGS) $(filter %.o,$^) $(LIBRARY) $(LDFLAGS) -Wl,-Map=$(@:.elf=.map) -o $@

-include $(OBJECTS:.o=.d) $(APPLICATION_OBJECTS:.o=.d) $(if $(MODEL),$(wildcard $(MODEL)/*.d))
