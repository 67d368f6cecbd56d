/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Runs each input that is named once, in the place of libFuzzer.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 65536 };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; ++i) {
        uint8_t *data = malloc(MOST);
        FILE *in = fopen(argv[i], "r");
        size_t size;

        if (NULL == data || NULL == in) {
            perror(argv[i]);
            return 1;
        }
        size = fread(data, 1, MOST, in);
        fclose(in);
        LLVMFuzzerTestOneInput(data, size);
        free(data);
    }
    return argc < 2;
}
