/* A plugin of QEMU's user mode that counts executed instructions and prints the total at exit. The
 * few declarations are those of QEMU's plugin interface, whose header Debian does not package. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
typedef uint64_t qemu_plugin_id_t;
typedef void (*tb_callback)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*exit_callback)(qemu_plugin_id_t id, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_callback callback);
/* Adds `value` to *at each time the block runs; 0 names the only operation, addition. */
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int operation, void *at,
                                              uint64_t value);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, exit_callback callback, void *data);
void qemu_plugin_outs(const char *text);

EXPORT int qemu_plugin_version = 1;

static uint64_t executed;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, &executed, qemu_plugin_tb_n_insns(tb));
}

static void finished(qemu_plugin_id_t id, void *data) {
    char text[64];
    (void)id, (void)data;
    snprintf(text, sizeof text, "instructions %" PRIu64 "\n", executed);
    qemu_plugin_outs(text);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int count, char **arguments) {
    (void)info, (void)count, (void)arguments;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finished, NULL);
    return 0;
}
