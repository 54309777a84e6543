/* The model runner with a text console: lines that end with CR, uploads of raw bytes, results as
 * JSON.
 *
 * It answers as NXP's tflm_modelrunner does on a serial port, and takes payloads of open microcode
 * where that takes LiteRT models. Tensors have no names in a payload: they are called input_0,
 * output_0 and so on. */
#include <stdlib.h>
#include <string.h>

#include "generated/microcode.h"
#include "model.h"
#include "uart.h"

enum { LINE_LIMIT = 350, TERMINATORS = 7, DELETE = 127 };

static _Alignas(16) uint8_t received[MODEL_LIMIT];
static char line[LINE_LIMIT + 1];
static bool echo = true;
static uint32_t runs = 1, microseconds;

static void put_text(const char *text) { uart_put_bytes(text, (uint32_t)strlen(text)); }

static void put_number(uint32_t value) {
    char digits[11]; /* 2^32 - 1 has ten */
    char *at = digits + sizeof digits;
    *--at = 0;
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    put_text(at);
}

static void put_field(const char *name, uint32_t value) {
    put_text("\"");
    put_text(name);
    put_text("\": ");
    put_number(value);
}

/* Six decimals. */
static void put_scale(float scale) {
    const uint32_t millionths = (uint32_t)(scale * 1e6F + 0.5F);
    put_number(millionths / 1000000);
    put_text(".");
    for (uint32_t power = 100000; power; power /= 10)
        uart_put((uint8_t)('0' + millionths / power % 10));
}

static const char *type_name(uint8_t dtype) {
    switch (dtype) {
    case NEUTRON_DTYPE_INT8: return "INT8";
    case NEUTRON_DTYPE_UINT8: return "UINT8";
    case NEUTRON_DTYPE_INT16: return "INT16";
    case NEUTRON_DTYPE_INT32: return "INT32";
    case NEUTRON_DTYPE_FLOAT32: return "FLOAT32";
    default: return "NoType";
    }
}

static void put_base64(const uint8_t *data, uint32_t size) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (uint32_t at = 0; at < size; at += 3) {
        const uint32_t left = size - at;
        const uint32_t bits = (uint32_t)data[at] << 16 |
                              (left > 1 ? (uint32_t)data[at + 1] << 8 : 0) |
                              (left > 2 ? data[at + 2] : 0);
        uart_put((uint8_t)digit[bits >> 18]);
        uart_put((uint8_t)digit[bits >> 12 & 63]);
        uart_put(left > 1 ? (uint8_t)digit[bits >> 6 & 63] : '=');
        uart_put(left > 2 ? (uint8_t)digit[bits & 63] : '=');
    }
}

/* Name, index, type and shape of a tensor: the fields that every description of one has. */
static void put_tensor(const char *kind, uint32_t at, const NeutronTensorInfo *tensor) {
    put_text("{\"name\": \"");
    put_text(kind);
    put_number(at);
    put_text("\", ");
    put_field("idx", at);
    put_text(", \"data_type\": \"");
    put_text(type_name(tensor->dtype));
    put_text("\", \"shape\": [");
    for (uint32_t axis = 0; axis < tensor->rank; axis++) {
        if (axis) put_text(",");
        put_number(tensor->dims[axis]);
    }
    put_text("]");
}

static void put_side(const char *kind, uint32_t count,
                     const NeutronTensorInfo *(*tensor)(uint32_t)) {
    put_text("[");
    for (uint32_t at = 0; at < count; at++) {
        const int32_t zero = tensor(at)->zeroPoint;
        if (at) put_text(",");
        put_tensor(kind, at, tensor(at));
        put_text(", \"scale\": ");
        put_scale(tensor(at)->scale);
        put_text(zero < 0 ? ", \"zero_points\": -" : ", \"zero_points\": ");
        put_number((uint32_t)(zero < 0 ? -zero : zero));
        put_text("}");
    }
    put_text("]");
}

static void begin_results(void) { put_text("\r\n\r\nResults:"); }

static bool refuse_without_model(void) {
    if (!model_loaded()) put_text("{\"error\": \"Model Not Uploaded\"}");
    return !model_loaded();
}

static void describe(void) {
    begin_results();
    if (refuse_without_model()) return;
    put_text("{");
    put_field("timing", microseconds);
    put_text(", ");
    put_field("model_size", model_bytes());
    put_text(", ");
    put_field("ktensor_arena_size", model_arena());
    put_text(", \"inputs\": ");
    put_side("input_", model_inputs(), model_input);
    put_text(", \"outputs\": ");
    put_side("output_", model_outputs(), model_output);
    put_text(
        ", \"layer_count\": 1, \"layers\": [{\"name\": \"output_0\", \"type\": \"NeutronGraph\", ");
    put_field("timing", microseconds);
    put_text(", \"process_unit\": \"CPU\"}]}");
}

/* Takes an upload and the bytes that close it. */
static void take(uint8_t *into, uint32_t size) {
    for (uint32_t at = 0; at < size; at++) into[at] = uart_get();
    for (uint32_t at = 0; at < TERMINATORS; at++)
        if (uart_get() != '%') {
            put_text("EOF");
            break;
        }
    put_text("\r\n######### ");
    put_number(size);
    put_text(" bytes received #########\r\n");
}

static void load_model(const char *argument) {
    const unsigned long size = strtoul(argument, NULL, 10);
    const char *detail;
    if (size > MODEL_LIMIT) {
        put_text("\r\nmodel malloc failed");
        return;
    }
    put_text("\r\n######### Ready for TFLite model download MEM\r\n");
    take(received, (uint32_t)size);
    runs = 1;
    switch (model_load(received, (uint32_t)size, &detail)) {
    case MODEL_READY:
        if (!model_run(&microseconds)) put_text("\r\nInvoke failed");
        return;
    case MODEL_NO_MEMORY: put_text("\r\ntensor_arena alloc failed."); return;
    default: break;
    }
    put_text("\r\nFailed to load the model: ");
    put_text(*detail ? detail : "no payload of open microcode");
}

/* The index behind a name such as input_0; `count` when it is none. */
static uint32_t index_of(const char *text, const char *begin, uint32_t count) {
    const size_t length = strlen(begin);
    char *end;
    if (strncmp(text, begin, length) != 0 || text[length] < '0' || text[length] > '9') return count;
    const unsigned long found = strtoul(text + length, &end, 10);
    return (*end && *end != ' ') || found >= count ? count : (uint32_t)found;
}

static void load_tensor(const char *name) {
    const uint32_t count = model_inputs();
    uint32_t at = index_of(name, "input_idx_", count);
    if (at == count) at = index_of(name, "input_", count);
    if (at == count) {
        put_text("\r\nTENSOR ERROR: No such input tensor '");
        put_text(name);
        put_text("'");
        return;
    }
    put_text("\r\n######### Ready for ");
    put_text(name);
    put_text(" tensor download  MEM\r\n");
    take(model_input_data(at), model_input(at)->bytes);
}

/* run [run=N] [output=NAME]... [output_idx=N]... */
static void run(const char *arguments) {
    bool wanted[16] = {false}, any = false;
    uint64_t total = 0;
    for (const char *word = arguments; *word; word += strcspn(word, " "), word += *word == ' ') {
        uint32_t at = model_outputs();
        if (strncmp(word, "run=", 4) == 0) {
            runs = (uint32_t)strtoul(word + 4, NULL, 10);
            continue;
        }
        if (strncmp(word, "output_idx=", 11) == 0) at = index_of(word, "output_idx=", at);
        else if (strncmp(word, "output=", 7) == 0) at = index_of(word + 7, "output_", at);
        if (model_loaded() && at == model_outputs()) {
            begin_results();
            put_text("{\"error\": \"Output Tensor Not Found\"}");
            return;
        }
        if (model_loaded()) wanted[at] = any = true;
    }
    if (model_loaded()) {
        for (uint32_t number = 0; number < runs; number++) {
            if (!model_run(&microseconds)) put_text("\r\nInvoke failed");
            total += microseconds;
        }
        if (runs) microseconds = (uint32_t)(total / runs);
    }
    begin_results();
    if (refuse_without_model()) return;
    put_text("{");
    if (any) put_text("\"outputs\": [");
    any = false;
    for (uint32_t at = 0; at < model_outputs(); at++) {
        if (!wanted[at]) continue;
        put_text(any ? "," : "");
        any = true;
        put_tensor("output_", at, model_output(at));
        put_text(", \"data\": \"");
        put_base64(model_output_data(at), model_output(at)->bytes);
        put_text("\"}");
    }
    put_text(any ? "], " : "");
    put_field("timing", microseconds);
    put_text("}");
    /* Inputs that are not loaded before the next run are zeros. */
    for (uint32_t at = 0; at < model_inputs(); at++)
        memset(model_input_data(at), 0, model_input(at)->bytes);
}

/* Asks the processor for a reset (Armv8-M, Application Interrupt and Reset Control Register). */
static void reset(void) {
    *(volatile uint32_t *)0xE000ED0Cu = 0x05FA0004u;
    for (;;) {}
}

static void obey(void) {
    char *space = strchr(line, ' ');
    const char *argument = space ? space + 1 : "";
    if (space) *space = 0;
    if (strcmp(line, "model_loadb") == 0) load_model(argument);
    else if (strcmp(line, "tensor_loadb") == 0) load_tensor(argument);
    else if (strcmp(line, "run") == 0) run(argument);
    else if (strcmp(line, "model") == 0) describe();
    else if (strcmp(line, "echo") == 0) echo = strcmp(argument, "off") != 0;
    else if (strcmp(line, "reset") == 0) reset();
}

int main(void) {
    uint32_t used = 0;
    uart_start();
    neutronInit();
    put_text("\r\n############################\r\n     TFLite Modelrunner     \r\n"
             "############################\r\n\r\n=> ");
    for (;;) {
        const uint8_t byte = uart_get();
        if (byte == '\r') {
            line[used] = 0;
            used = 0;
            obey();
            put_text("\r\n=> ");
        } else if (byte == DELETE) {
            if (used) used--;
        } else if (used < LINE_LIMIT) {
            line[used++] = (char)byte;
            if (echo) uart_put(byte);
        } else {
            put_text("\b \b");
        }
    }
}
