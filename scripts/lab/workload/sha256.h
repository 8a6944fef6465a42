// One block of SHA-256 at a time; padding is the caller's.
#pragma once
#include <stdint.h>

void sha256_start(uint32_t state[8]);
void sha256_block(uint32_t state[8], const uint8_t block[64]);
