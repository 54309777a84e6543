/* The model on the samples that come along, compared with the outputs expected of them. */
#ifndef SELF_TEST_H
#define SELF_TEST_H

#ifdef __cplusplus
extern "C" {
#endif

/* Run all samples and print what differs; the last line is "self-test: pass" or "self-test: fail".
 * Returns 0 when every byte is as expected. */
int self_test(void);

#ifdef __cplusplus
}
#endif
#endif
