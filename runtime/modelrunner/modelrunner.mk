# Model runners for a Cortex-M33 under QEMU: frames.elf and console.elf. From the project's root:
#
#   make -f runtime/modelrunner/modelrunner.mk runners
#   qemu-system-arm -M mps2-an505 -nographic -semihosting -kernel build/modelrunner/frames.elf -serial tcp::3456,server
#   openneutron board info -p socket://localhost:3456
BUILD ?= build/modelrunner
RUNNERS := $(patsubst %/modelrunner.mk,%,$(lastword $(MAKEFILE_LIST)))
.DEFAULT_GOAL := runners
include $(RUNNERS)/../cortex_m33/firmware.mk

COMMON := $(filter-out %/frames.c %/console.c,$(wildcard $(RUNNERS)/*.c))
COMMON_OBJECTS := $(COMMON:$(RUNNERS)/%.c=$(BUILD)/modelrunner/%.o) $(APPLICATION_OBJECTS)

.PHONY: runners
runners: $(BUILD)/frames.elf $(BUILD)/console.elf

$(BUILD)/modelrunner/%.o: $(RUNNERS)/%.c $(RUNNERS)/modelrunner.mk
	@mkdir -p $(@D)
	$(CROSS)gcc $(CFLAGS) $(PUBLIC) -c $< -o $@

$(BUILD)/%.elf: $(BUILD)/modelrunner/%.o $(COMMON_OBJECTS) $(LIBRARY) $(RUNTIME)/cortex_m33/image.ld
	$(CROSS)gcc $(CFLAGS) $(filter %.o,$^) $(LIBRARY) $(LDFLAGS) -Wl,-Map=$(@:.elf=.map) -o $@

.SECONDARY:
-include $(wildcard $(BUILD)/modelrunner/*.d)
