/* SHA-1 and SHA-256 (FIPS 180-4): content checks of archives, not secrets. */
#ifndef WS_SHA_H
#define WS_SHA_H

#include "ws/types.h"

struct ws_sha {
	uint32_t h[8];
	uint64_t n; /* bytes so far */
	uint8_t block[64];
	int words; /* of the result: 5 is SHA-1, 8 is SHA-256 */
};

#define WS_SHA_HEX 65 /* room for the longest result as text */

void ws_sha1_init(struct ws_sha *s);
void ws_sha256_init(struct ws_sha *s);
void ws_sha_add(struct ws_sha *s, const void *p, size_t n);
/* Lower-case hex and a NUL; the state is used up. */
void ws_sha_hex(struct ws_sha *s, char out[WS_SHA_HEX]);

#endif
