# Driver and firmware for a Cortex-M, and one application around one model. From the project's root:
#
#   make -f runtime/cortex_m33/firmware.mk library
#   make -f runtime/cortex_m33/firmware.mk image MODEL=folder [SELECTION=kernel_selection.c]
#
# MODEL holds model.c and model.h, made by `openneutron extract-payload x.pte -o folder/model.c --random-inputs 0`;
# the image becomes folder/NAME.elf. SELECTION links only the kernels it names.
CROSS ?= arm-none-eabi-
# cortex-m33+nodsp builds the portable loops, as do processors without the DSP extension. cortex-m55 and cortex-m85 have the loops
# for Helium, cortex-m55+nomve those of the DSP extension.
CPU ?= cortex-m33
BUILD ?= build/firmware
NAME ?= model
# When coded constants become plain: a `block` of output channels at a time, in the least memory; at each `call`, in the memory of
# the largest; once for each `layer`, in the memory of those that run in one loop; or at `prepare`, in memory for all of them.
DECODE ?= block
# yes: the image compares the payload's checksum before it runs the model. In the flash of the image itself it may be left out.
CHECKSUM ?= yes
# yes: without the cycle model, the sentences of errors (their numbers stay) and, for a model whose constants are plain, the
# decoders of coded ones (runtime/firmware/nd_features.h).
LEAN ?= no
# The application, in C or C++; it includes the model's header.
MAIN ?= $(RUNTIME)/cortex_m33/main.c

# Memory of QEMU's board for the processor: mps2-an386 (M4), mps2-an500 (M7), mps3-an547 (M55, M85), else mps2-an505.
memory_cortex-m0plus := 0x0 4M 0x20000000 2M
memory_cortex-m4 := $(memory_cortex-m0plus)
memory_cortex-m7 := $(memory_cortex-m0plus)
memory_cortex-m55 := 0x10000000 512K 0x30000000 512K
memory_cortex-m85 := $(memory_cortex-m55)
MEMORY ?= $(or $(memory_$(firstword $(subst +, ,$(CPU)))),0x10000000 4M 0x38000000 2M)

RUNTIME := $(patsubst %/cortex_m33/,%,$(dir $(lastword $(MAKEFILE_LIST))))
# An older compiler does not know the Cortex-M85. The Cortex-M55 has the same instructions but for pointer authentication.
MCPU := $(if $(filter cortex-m85%,$(CPU)),$(shell $(CROSS)gcc -mcpu=cortex-m85 -E -x c /dev/null >/dev/null 2>&1 && echo $(CPU) || echo $(subst m85,m55,$(CPU))),$(CPU))
# Vectors of integers take what floating point is passed in, so these two name that; there is no floating point all the same.
FLOAT := $(if $(filter cortex-m55 cortex-m85,$(CPU)),-mcpu=$(MCPU)+nofp -mfloat-abi=softfp,-mcpu=$(MCPU) -mfloat-abi=soft)
# What the compiler counts with too; `stack` in the report of an image is the measured figure.
STACK_BYTES ?= $(shell sed -n 's/^STACK_BYTES = //p' $(RUNTIME)/../src/openneutron/machine/runtime_memory.py)
VERSION := $(shell sed -n 's/^__version__.*"\(.*\)"/\1/p' $(RUNTIME)/../src/openneutron/_version.py)
# An application sees the public headers alone.
PUBLIC := -I$(RUNTIME)/include -I$(RUNTIME)/cortex_m33
PRIVATE := -I$(RUNTIME)/include -I$(RUNTIME)/firmware -I$(RUNTIME)/firmware/driver -I$(RUNTIME)/firmware/machine
# Without warnings about formats: here uint32_t is a long, which printf's rules tell apart from an int and the machine not.
CFLAGS := $(FLOAT) -mthumb -std=c11 -Os -g -ffunction-sections -fdata-sections \
          -MMD -MP -Wall -Wextra -Werror -Wno-format -DNEUTRON_NO_HEAP -DNEUTRON_NO_THREADS \
          '-DOPENNEUTRON_VERSION="$(VERSION)"' $(if $(filter prepare,$(DECODE)),-DDECODE_AT_PREPARE) $(if $(filter block,$(DECODE)),-DDECODE_BY_BLOCK) $(if $(filter layer,$(DECODE)),-DDECODE_BY_LAYER) $(if $(filter yes,$(CHECKSUM)),-DCHECK_PAYLOAD)
LDFLAGS := -nostartfiles --specs=nano.specs -Wl,--gc-sections -Wl,--no-warn-rwx-segments \
           -Wl,--defsym=STACK_BYTES=$(STACK_BYTES) -T $(RUNTIME)/cortex_m33/image.ld
place = -Wl,--defsym=$(1)_ORIGIN=$(word $(2),$(MEMORY)) -Wl,--defsym=$(1)_BYTES=$(word $(3),$(MEMORY))
LDFLAGS += $(call place,FLASH,1,2) $(call place,RAM,3,4)

# A lean library for models with and without coded constants, each in a folder of its own.
CODED := $(if $(MODEL),$(shell grep -qs 'PLAIN_BYTES 0u\?$$' $(MODEL)/model.h || echo yes),yes)
LEFT_OUT := $(if $(filter yes,$(LEAN)),-DNEUTRON_NO_CYCLES -DNEUTRON_NO_MESSAGES $(if $(CODED),,-DNEUTRON_NO_DECODERS))
CFLAGS += $(LEFT_OUT)
OUT := $(BUILD)$(if $(filter yes,$(LEAN)),/lean$(if $(CODED),-coded))

LIBRARY := $(OUT)/libneutron.a
# All of runtime/firmware, nothing of runtime/host.
SOURCES := $(wildcard $(RUNTIME)/firmware/*.c $(RUNTIME)/firmware/*/*.c)
ifeq ($(LEAN),yes)
SOURCES := $(filter-out $(RUNTIME)/firmware/machine/%,$(SOURCES)) $(RUNTIME)/firmware/machine/targets.c
endif
APPLICATION := $(wildcard $(RUNTIME)/cortex_m33/*.c)
# C++ as an image without its library can hold it.
CXXFLAGS = $(filter-out -std=c11,$(CFLAGS)) -std=c++17 -fno-exceptions -fno-rtti -fno-threadsafe-statics
MAIN_COMPILER = $(if $(filter %.cpp,$(MAIN)),$(CROSS)g++ $(CXXFLAGS),$(CROSS)gcc $(CFLAGS))
OBJECTS := $(SOURCES:$(RUNTIME)/%.c=$(OUT)/%.o)
APPLICATION_OBJECTS := $(filter-out %/main.o,$(APPLICATION:$(RUNTIME)/%.c=$(OUT)/%.o))

.PHONY: library image
library: $(LIBRARY)
image: $(MODEL)/$(NAME).elf

# Inner loops are built for speed, everything else for size, and what calls loops in assembly.
$(OUT)/firmware/dsp/%.o $(OUT)/firmware/helium/%.o: CFLAGS += -O2
$(foreach part,dense_dsp pixel_pairs pool_dsp pool_pixels,$(OUT)/firmware/dsp/$(part).o): CFLAGS += -Os

$(OUT)/%.o: $(RUNTIME)/%.c $(RUNTIME)/cortex_m33/firmware.mk
	@mkdir -p $(@D)
	$(CROSS)gcc $(CFLAGS) $(PRIVATE) -c $< -o $@

$(OUT)/cortex_m33/%.o: $(RUNTIME)/cortex_m33/%.c $(RUNTIME)/cortex_m33/firmware.mk
	@mkdir -p $(@D)
	$(CROSS)gcc $(CFLAGS) $(PUBLIC) -c $< -o $@

# P tells members apart by folder: a kernel and its cost formula may have the same name.
$(LIBRARY): $(OBJECTS)
	@rm -f $@
	$(CROSS)ar rcsP $@ $^

$(MODEL)/%.o: $(MODEL)/%.c
	$(CROSS)gcc $(CFLAGS) $(PUBLIC) -c $< -o $@

# The application's own main.c includes the model's sizes.
$(MODEL)/main.o: $(MAIN) $(MODEL)/model.h
	$(MAIN_COMPILER) $(PUBLIC) -I$(MODEL) -c $< -o $@

$(MODEL)/$(NAME)_selection.o: $(SELECTION)
	$(CROSS)gcc $(CFLAGS) $(PRIVATE) -c $< -o $@

# Objects come before the library: a selection's table is then already there when the linker looks for one.
$(MODEL)/$(NAME).elf: $(MODEL)/main.o $(MODEL)/model.o $(APPLICATION_OBJECTS) $(if $(SELECTION),$(MODEL)/$(NAME)_selection.o) \
                      $(LIBRARY) $(RUNTIME)/cortex_m33/image.ld
	$(CROSS)gcc $(CFLAGS) $(filter %.o,$^) $(LIBRARY) $(LDFLAGS) -Wl,-Map=$(@:.elf=.map) -o $@

-include $(OBJECTS:.o=.d) $(APPLICATION_OBJECTS:.o=.d) $(if $(MODEL),$(wildcard $(MODEL)/*.d))
