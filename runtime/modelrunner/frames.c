/* The model runner that speaks frames: 55 AA | command | length u32 | payload | CRC-16, little
 * endian.
 *
 * It answers as NXP's executorch_modelrunner does, and takes payloads of open microcode where that
 * takes ExecuTorch programs. It has no time limits: a frame that lost bytes waits for more. */
#include <string.h>

#include "generated/microcode.h"
#include "model.h"
#include "uart.h"

enum { LOAD_MODEL = 1, LOAD_INPUT = 2, RUN = 3, GET_INFO = 4 };
enum { OK = 0x81, INFO = 0x82, RESULT = 0x83, ERROR = 0xC0 };
enum {
    BAD_CRC = 0x01,
    BAD_COMMAND = 0x02,
    TOO_LARGE = 0x03,
    BAD_INPUT = 0x05,
    RUN_FAILED = 0x07,
    BAD_STATE = 0x08,
    BAD_PROGRAM = 0x10,
    NO_MEMORY = 0x13,
    LOAD_FAILED = 0x14
};
/* Sizes of NXP's buffers: a longer frame gets no answer, a longer description is left out. */
#define FRAME_LIMIT 1048576u
#define INFO_LIMIT 256u
#define RESULT_LIMIT 266240u
#define REASON_LIMIT 48u

/* The largest payload that is kept; longer ones are read to their end and refused. */
static _Alignas(16) uint8_t received[MODEL_LIMIT];
static bool input_ready;

/* CRC-16/CCITT-FALSE: polynomial 0x1021, most significant bit first. */
static uint16_t crc_add(uint16_t crc, uint8_t byte) {
    crc ^= (uint16_t)(byte << 8);
    for (int bit = 0; bit < 8; bit++) crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    return crc;
}

static uint16_t sent_crc;

static void put(const void *data, uint32_t size) {
    const uint8_t *bytes = data;
    for (uint32_t at = 0; at < size; at++) {
        sent_crc = crc_add(sent_crc, bytes[at]);
        uart_put(bytes[at]);
    }
}

static void put8(uint8_t value) { put(&value, 1); }
static void put32(uint32_t value) { put(&value, 4); }

static void begin(uint8_t command, uint32_t size) {
    uart_put_bytes("\x55\xAA", 2);
    sent_crc = 0xFFFF;
    put8(command);
    put32(size);
}

static void end(void) {
    const uint16_t crc = sent_crc;
    uart_put_bytes(&crc, sizeof crc);
}

static void answer(uint8_t command) {
    begin(command, 0);
    end();
}

static void refuse(uint8_t code, const char *what, const char *detail) {
    char text[REASON_LIMIT + 1] = {0};
    strncat(text, what, REASON_LIMIT);
    if (*detail) strncat(text, ": ", REASON_LIMIT - strlen(text));
    strncat(text, detail, REASON_LIMIT - strlen(text));
    begin(ERROR, 1 + (uint32_t)strlen(text));
    put8(code);
    put(text, (uint32_t)strlen(text));
    end();
}

/* The number that ExecuTorch has for an element type. */
static uint8_t scalar_type(uint8_t dtype) {
    switch (dtype) {
    case NEUTRON_DTYPE_UINT8: return 0;
    case NEUTRON_DTYPE_INT8: return 1;
    case NEUTRON_DTYPE_INT16: return 2;
    case NEUTRON_DTYPE_INT32: return 3;
    case NEUTRON_DTYPE_INT64: return 4;
    case NEUTRON_DTYPE_FLOAT32: return 6;
    default: return 11; /* bool */
    }
}

static void put_shape(const NeutronTensorInfo *tensor) {
    put8(scalar_type(tensor->dtype));
    put8(tensor->rank);
    for (uint32_t at = 0; at < tensor->rank; at++) put32(tensor->dims[at]);
}

static void put_side(uint32_t count, const NeutronTensorInfo *(*tensor)(uint32_t)) {
    put8((uint8_t)count);
    for (uint32_t at = 0; at < count; at++) {
        put_shape(tensor(at));
        for (uint32_t axis = 0; axis < tensor(at)->rank; axis++) put8((uint8_t)axis);
        put32(tensor(at)->bytes);
    }
}

static void describe(void) {
    uint32_t size = 2;
    for (uint32_t at = 0; at < model_inputs(); at++) size += 6 + 5 * model_input(at)->rank;
    for (uint32_t at = 0; at < model_outputs(); at++) size += 6 + 5 * model_output(at)->rank;
    if (!model_loaded() || size > INFO_LIMIT) {
        answer(INFO);
        return;
    }
    begin(INFO, size);
    put_side(model_inputs(), model_input);
    put_side(model_outputs(), model_output);
    end();
}

static void load_model(uint32_t size) {
    const char *detail;
    input_ready = false;
    switch (model_load(received, size, &detail)) {
    case MODEL_READY: answer(OK); break;
    case MODEL_TOO_LARGE: refuse(TOO_LARGE, "load_model", ""); break;
    case MODEL_UNKNOWN: refuse(BAD_PROGRAM, "load_model", ""); break;
    case MODEL_REFUSED: refuse(LOAD_FAILED, "load_model", detail); break;
    case MODEL_NO_MEMORY: refuse(NO_MEMORY, "load_model", detail); break;
    }
}

static void load_input(uint32_t size) {
    if (!model_loaded()) {
        refuse(BAD_STATE, "no model", "");
    } else if (!model_inputs() || size != model_input(0)->bytes || size > INPUT_LIMIT) {
        refuse(BAD_INPUT, "load_input", "");
    } else {
        memcpy(model_input_data(0), received, size);
        input_ready = true;
        answer(OK);
    }
}

static void run(void) {
    uint32_t size = 9, microseconds = 0;
    for (uint32_t at = 0; at < model_outputs(); at++)
        size += 6 + 4 * model_output(at)->rank + model_output(at)->bytes;
    if (!input_ready) {
        refuse(BAD_STATE, "no input", "");
    } else if (size > RESULT_LIMIT || !model_run(&microseconds)) {
        refuse(RUN_FAILED, "run", "");
    } else {
        input_ready = false;
        begin(RESULT, size);
        put32(microseconds);
        put32(0); /* the time has 64 bits */
        put8((uint8_t)model_outputs());
        for (uint32_t at = 0; at < model_outputs(); at++) {
            put_shape(model_output(at));
            put32(model_output(at)->bytes);
            put(model_output_data(at), model_output(at)->bytes);
        }
        end();
    }
}

static void obey(uint8_t command, uint32_t size) {
    if (size > sizeof received) {
        refuse(TOO_LARGE, "load_model", "");
        return;
    }
    switch (command) {
    case LOAD_MODEL: load_model(size); break;
    case LOAD_INPUT: load_input(size); break;
    case RUN: run(); break;
    case GET_INFO: describe(); break;
    default: refuse(BAD_COMMAND, "unknown cmd", ""); break;
    }
}

/* Waits for the two bytes that begin a frame; 55 55 AA begins one too. */
static void hunt(void) {
    uint8_t last = 0;
    for (uint8_t byte = uart_get(); last != 0x55 || byte != 0xAA; byte = uart_get()) last = byte;
}

static uint8_t get(uint16_t *crc) {
    const uint8_t byte = uart_get();
    *crc = crc_add(*crc, byte);
    return byte;
}

int main(void) {
    static const char banner[] = "\r\nExecuTorch Modelrunner Ready\r\n";
    uart_start();
    neutronInit();
    uart_put_bytes(banner, sizeof banner - 1);
    for (;;) {
        uint16_t crc = 0xFFFF;
        hunt();
        const uint8_t command = get(&crc);
        uint32_t size = 0;
        for (uint32_t shift = 0; shift < 32; shift += 8) size |= (uint32_t)get(&crc) << shift;
        if (size > FRAME_LIMIT) continue;
        for (uint32_t at = 0; at < size; at++) {
            const uint8_t byte = get(&crc);
            if (at < sizeof received) received[at] = byte;
        }
        const uint8_t low = uart_get();
        if ((low | uart_get() << 8) != crc) refuse(BAD_CRC, "", "");
        else obey(command, size);
    }
}
