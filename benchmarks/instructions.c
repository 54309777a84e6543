/* A plugin of QEMU that counts executed instructions. At exit it writes a line for each block of
 * translated code: address, instructions, how often it ran. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is used of the plugin interface, version 1: Debian's package of QEMU has no header for it.
 */
enum { INTERFACE = 1, INLINE_ADD_64 = 0 };
typedef struct qemu_plugin_tb translated;
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
                                           void (*made)(uint64_t id, translated *code));
void qemu_plugin_register_vcpu_tb_exec_inline(translated *code, int operation, void *number,
                                              uint64_t operand);
void qemu_plugin_register_atexit_cb(uint64_t id, void (*ended)(uint64_t id, void *context),
                                    void *context);
size_t qemu_plugin_tb_n_insns(const translated *code);
uint64_t qemu_plugin_tb_vaddr(const translated *code);
int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

int qemu_plugin_version = INTERFACE;

typedef struct block {
    struct block *next;
    uint64_t address, instructions, runs;
} block;

static block *blocks;
static FILE *out;

static void count(uint64_t id, translated *code) {
    (void)id;
    block *made = calloc(1, sizeof *made);
    if (made == NULL) abort();
    *made = (block){blocks, qemu_plugin_tb_vaddr(code), qemu_plugin_tb_n_insns(code), 0};
    blocks = made;
    qemu_plugin_register_vcpu_tb_exec_inline(code, INLINE_ADD_64, &made->runs, 1);
}

static void write_counts(uint64_t id, void *context) {
    (void)id, (void)context;
    for (const block *at = blocks; at; at = at->next)
        if (at->runs)
            fprintf(out, "%llx %llu %llu\n", (unsigned long long)at->address,
                    (unsigned long long)at->instructions, (unsigned long long)at->runs);
    fclose(out);
}

/* The one argument is `to=FILE`. */
int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
    (void)info;
    if (argc != 1 || strncmp(argv[0], "to=", 3) != 0) return 1;
    out = fopen(argv[0] + 3, "w");
    if (out == NULL) return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, count);
    qemu_plugin_register_atexit_cb(id, write_counts, NULL);
    return 0;
}
