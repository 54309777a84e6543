/* The model that NXP's converter made, on the NPU: run the samples, compare, print. */
#ifndef NPU_TEST_H
#define NPU_TEST_H

#ifdef __cplusplus
extern "C" {
#endif

/* Print what differs; the last line is "self-test: pass" or "self-test: fail". Returns 0 when every
 * byte equals LiteRT's exact value or the one expected of the NPU's rounding. */
int npu_test(void);

#ifdef __cplusplus
}
#endif
#endif
